// CUDA devices on the fake driver, for the tests of every device and those of their own.
#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "devices/cuda/cuda_device.hpp"
#include "tests/devices/cuda/fake_driver.hpp"

namespace troupe::test {

// Host functions as kernels of the fake driver: one that fails is an error of the GPU, which stays.
class HostKernels {
 public:
  explicit HostKernels(CudaDevice& device) : device_(&device) {
    register_in_fake_cuda("host_call", run, {sizeof(Function*)});
    function_ = device.function(fake_cuda::kImage, "host_call").value();
  }
  Status launch(std::function<Status()> work) {
    Function* function = nullptr;
    {
      std::lock_guard lock(calls_->mutex);
      calls_->functions.push_back(std::move(work));
      function = &calls_->functions.back();
    }
    void* arguments[] = {&function};
    return device_->launch_kernel({.function = function_, .arguments = arguments});
  }
  Ticket enqueue(std::function<Status()> work) {
    const Status launched = launch(std::move(work));
    TROUPE_CHECK(launched.ok(), launched.text());
    return device_->stream().mark();
  }

 private:
  using Function = std::function<Status()>;
  struct Calls {
    std::mutex mutex;
    std::deque<Function> functions;
  };
  static cuda::Result run(const fake_cuda::Launched& launched) {
    return (**static_cast<Function* const*>(launched.arguments[0]))().ok() ? cuda::kSuccess
                                                                           : cuda::kIllegalAddress;
  }

  CudaDevice* device_;
  cuda::FunctionHandle function_ = nullptr;
  std::shared_ptr<Calls> calls_ = std::make_shared<Calls>();
};

// `fake`: what the driver is like (tests/fake_cuda/fake_cuda.hpp).
inline Expected<std::unique_ptr<CudaDevice>> make_cuda_on_fake(const DeviceName& name,
                                                               const std::string& fake,
                                                               CudaOptions options = {}) {
  FakeCuda on(fake);
  options.search = fake_cuda_search();
  return make_cuda_device(name, options);
}

}  // namespace troupe::test
