// CudaDevice: an NVIDIA GPU.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/function_ref.hpp"
#include "devices/cuda/attentions.hpp"
#include "devices/cuda/context.hpp"
#include "devices/cuda/convolutions.hpp"
#include "devices/cuda/products.hpp"
#include "devices/device.hpp"

namespace troupe {

struct CudaOptions {
  int ordinal = 0;         // which of the driver's GPUs
  std::size_t memory = 0;  // bytes that tensors may take; 0: most of what is free
  int lanes = 2;           // threads for bursts, which issue work
  // Whether threads look at an event again and again for a while before they sleep. By default
  // where there are more than 4 processors.
  std::optional<bool> spin;
  // Whether the host waits for each kernel and copy, so that one that fails is known. By default
  // what TROUPE_CUDA_SYNC says: 1 or 0.
  std::optional<bool> synchronous;
  cuda::Search search = cuda::Search::standard();  // of the driver
};

// One launch of a kernel. `arguments` point to its arguments; the call copies them.
struct KernelLaunch {
  cuda::FunctionHandle function = nullptr;
  std::array<unsigned, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  unsigned shared_bytes = 0;
  void** arguments = nullptr;
};

// Stream 0 is that of the kernels, and of copies within the device; stream 1 uploads, stream 2
// downloads. An upload into memory that no kernel has been given yet waits only for the kernels
// that used this memory before; others follow all kernels issued before. Host memory that is not
// from host_allocator() is copied through such memory.
//
// An error of the GPU fails all streams for good: no later device of this process would do better.
// What is issued while a NamedWork is recorded is timed by the GPU's clock, and is a span on the
// lines "kernels on", "uploads to" and "downloads from" the device. Nothing is timed otherwise.
// The destructor runs everything issued and launched before, and what that issues and launches; it
// must not run on a thread of the device.
class CudaDevice : public Device {
 public:
  virtual const cuda::Context& context() const = 0;
  // Compiles the functions of all that are GpuKernel.
  Status prepare(std::span<Kernel* const> kernels) override = 0;
  // A kernel of a module; the module is loaded once and stays as long as the device.
  virtual Expected<cuda::FunctionHandle> function(const std::string& image, const char* name) = 0;
  // On stream(). What the driver refuses is returned, and is no failure of the stream.
  virtual Status launch_kernel(const KernelLaunch& launch) = 0;

  // What computes products of matrices, or null: their own kernels do. Known once a kernel that
  // multiplies is prepared.
  virtual cuda::Products* products() const = 0;
  // The same of convolutions, and of kernels that convolve.
  virtual cuda::Convolutions* convolutions() const = 0;
  // The same of attention, and of kernels that attend.
  virtual cuda::Attentions* attentions() const = 0;
  // Has a library issue work on stream(). What `call` returns is returned, and is no failure of the
  // stream; tickets then cover what it had issued before. Where the host waits, an error of the
  // work is returned. A stream that has failed does not call.
  virtual Status issue(FunctionRef<Status(cuda::StreamHandle)> call) = 0;

  // The handle of a function of that type, or null: no kernel that it was prepared for has one.
  virtual cuda::FunctionHandle prepared(std::string_view type) const = 0;
  // How many functions were compiled so far, rather than found on disk.
  virtual int compiled_functions() const = 0;

  bool locates_failures() const override { return false; }
};

// failed_precondition with what `troupe doctor` says where there is no driver or GPU.
Expected<std::unique_ptr<CudaDevice>> make_cuda_device(DeviceName name, CudaOptions options = {});

}  // namespace troupe
