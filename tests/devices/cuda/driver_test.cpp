#include "devices/cuda/driver.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "tests/contains.hpp"
#include "tests/devices/cuda/fake_driver.hpp"
#include "tests/devices/touch.hpp"

using namespace troupe;
using namespace troupe::test;
using State = cuda::DriverReport::State;

namespace {

cuda::DriverReport fake(const std::string& options) {
  FakeCuda on(options);
  return cuda::look_for_driver(fake_cuda_search());
}

// A context on GPU 0 of the fake driver, and a stream.
struct OwnContext {
  explicit OwnContext(const std::string& options = "")
      : environment(options), d(cuda::open_driver(fake_cuda_search()).value()) {
    CHECK(d.cuDevicePrimaryCtxRetain(&context, 0) == cuda::kSuccess);
    CHECK(d.cuCtxSetCurrent(context) == cuda::kSuccess);
    CHECK(d.cuStreamCreateWithPriority(&stream, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
  }
  ~OwnContext() {
    d.cuStreamDestroy_v2(stream);
    d.cuDevicePrimaryCtxRelease_v2(0);
    CHECK(count_in_fake_cuda("contexts") == 0);
  }
  cuda::DeviceAddress allocate(std::size_t bytes) {
    cuda::DeviceAddress address = 0;
    CHECK(d.cuMemAlloc_v2(&address, bytes) == cuda::kSuccess);
    return address;
  }
  cuda::FunctionHandle function(const char* name) {
    cuda::ModuleHandle module = nullptr;
    cuda::FunctionHandle found = nullptr;
    CHECK(d.cuModuleLoadData(&module, fake_cuda::kImage) == cuda::kSuccess);
    CHECK(d.cuModuleGetFunction(&found, module, name) == cuda::kSuccess);
    CHECK(d.cuModuleUnload(module) == cuda::kSuccess);
    return found;
  }
  cuda::Result launch(cuda::FunctionHandle function, void** arguments) {
    return d.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, nullptr);
  }

  FakeCuda environment;
  cuda::Driver d;
  cuda::ContextHandle context = nullptr;
  cuda::StreamHandle stream = nullptr;
};

// y[i] += x
cuda::Result add_to_each(const fake_cuda::Launched& launched) {
  auto* y = *static_cast<float* const*>(launched.arguments[0]);
  const float x = *static_cast<const float*>(launched.arguments[1]);
  for (unsigned i = 0; i < launched.block[0]; ++i) y[i] += x;
  return cuda::kSuccess;
}

}  // namespace

TEST_CASE("CUDA: one line tells why there is no driver to use") {
  cuda::DriverReport none = cuda::look_for_driver({{"/nowhere"}, false});
  CHECK(none.state == State::missing);
  CHECK(none.text == "no driver: libcuda.so.1 is not in /nowhere");

  cuda::DriverReport stub = fake("stub=1");
  CHECK(stub.state == State::stub);
  CHECK(contains(stub.text, "/fake-cuda/libcuda.so.1 is a stub"));

  cuda::DriverReport old = fake("version=11040");
  CHECK(old.state == State::old);
  CHECK(contains(old.text, "too old: the fake driver of CUDA 11.4 ("));
  CHECK(contains(old.text, "; CUDA 12.0 is the least"));

  cuda::DriverReport empty = fake("devices=0");
  CHECK(empty.state == State::no_device);
  CHECK(contains(empty.text, "no device: the fake driver of CUDA 13.0 ("));

  cuda::DriverReport ready = fake("devices=3");
  CHECK(ready.state == State::ready);
  CHECK(ready.driver.fake);
  CHECK(ready.driver.devices == 3);
  CHECK(contains(ready.text, "the fake driver of CUDA 13.0 ("));
}

TEST_CASE("CUDA: a library that is no driver is told") {
  char folder[] = "/tmp/troupe-cuda-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  auto other = cuda::Library::open({"libm.so.6"}, {{}, true});
  REQUIRE(other.ok());
  const std::string file = std::string(folder) + "/libcuda.so.1";
  std::filesystem::create_symlink(other->path(), file);
  cuda::DriverReport report = cuda::look_for_driver({{folder}, false});
  CHECK(report.state == State::broken);
  CHECK(contains(report.text, " lacks cuInit"));
  std::filesystem::create_directory(std::string(folder) + "/lib");
  std::filesystem::remove(file);
  std::ofstream(std::string(folder) + "/lib/libcuda.so.1") << "not a library";
  report = cuda::look_for_driver({{folder}, false});
  CHECK(report.state == State::broken);
  CHECK(contains(report.text, "libcuda.so.1 cannot be loaded: "));
  std::filesystem::remove_all(folder);
  Status status = cuda::open_driver({{folder}, false}).status();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(contains(status.message(), "no driver: "));
}

TEST_CASE("CUDA: NVIDIA's stub library is told") {
  const std::string folder = "/usr/local/cuda/lib64/stubs";
  if (!std::filesystem::exists(folder + "/libcuda.so")) {
    MESSAGE("skipped: no toolkit with a stub library in /usr/local/cuda");
    return;
  }
  cuda::DriverReport report = cuda::look_for_driver({{folder}, false});
  CHECK(report.state == State::stub);
  CHECK(contains(report.text, "libcuda.so is a stub"));
}

TEST_CASE("CUDA: an error has the name that CUDA has for it") {
  const cuda::Driver d = fake("").driver;
  CHECK(d.check(cuda::kSuccess, "cuInit").ok());
  Status memory = d.check(cuda::kOutOfMemory, "cuMemAlloc");
  CHECK(memory.code() == Code::resource_exhausted);
  CHECK(memory.message() == "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)");
  CHECK(d.check(cuda::kNoDevice, "cuInit").code() == Code::unavailable);
  CHECK(d.check(98765, "cuInit").message() == "cuInit: CUDA error 98765");
}

TEST_CASE("CUDA: the fake driver's memory faults on the host, and is reached by its streams") {
  OwnContext c;
  const cuda::DeviceAddress address = c.allocate(4096);
  auto* pointer = reinterpret_cast<void*>(address);
  CHECK(touch(pointer, false) == kFaults);
  CHECK(touch(pointer, true) == kFaults);
  void* pinned = nullptr;
  REQUIRE(c.d.cuMemHostAlloc(&pinned, 4096, 0) == cuda::kSuccess);
  auto* floats = static_cast<float*>(pinned);
  CHECK(c.d.cuMemcpyDtoHAsync_v2(pinned, address, 4096, c.stream) == cuda::kSuccess);
  CHECK(c.d.cuStreamSynchronize(c.stream) == cuda::kSuccess);
  CHECK(std::isnan(floats[7]));  // fresh memory
  std::iota(floats, floats + 1024, 0.0f);
  CHECK(c.d.cuMemcpyHtoDAsync_v2(address, pinned, 4096, c.stream) == cuda::kSuccess);
  register_in_fake_cuda("add", add_to_each, {sizeof(float*), sizeof(float)});
  float by = 0.5f;
  cuda::DeviceAddress at = address + 16;
  void* arguments[] = {&at, &by};
  CHECK(c.launch(c.function("add"), arguments) == cuda::kSuccess);
  CHECK(c.d.cuMemcpyDtoHAsync_v2(pinned, address, 4096, c.stream) == cuda::kSuccess);
  CHECK(c.d.cuStreamSynchronize(c.stream) == cuda::kSuccess);
  CHECK(floats[3] == 3.0f);
  CHECK(floats[4] == 4.5f);
  CHECK(floats[35] == 35.5f);
  CHECK(floats[36] == 36.0f);
  CHECK(c.d.cuMemcpyDtoHAsync_v2(pinned, address, 4097, c.stream) == cuda::kInvalidValue);
  CHECK(c.d.cuMemFree_v2(address) == cuda::kSuccess);
  CHECK(c.d.cuMemFree_v2(address) == cuda::kInvalidValue);
  CHECK(c.d.cuMemFreeHost(pinned) == cuda::kSuccess);
}

TEST_CASE("CUDA: a stream of the fake driver waits for an event of another") {
  for (int seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    OwnContext c("delay_us=300,seed=" + std::to_string(seed));
    register_in_fake_cuda("add", add_to_each, {sizeof(float*), sizeof(float)});
    cuda::StreamHandle other = nullptr;
    CHECK(c.d.cuStreamCreateWithPriority(&other, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
    cuda::EventHandle event = nullptr;
    CHECK(c.d.cuEventCreate(&event, cuda::kEventDisableTiming) == cuda::kSuccess);
    cuda::DeviceAddress y = c.allocate(128);
    float by = 1.0f;
    void* arguments[] = {&y, &by};
    const cuda::FunctionHandle function = c.function("add");
    CHECK(c.d.cuMemsetD8Async(y, 0, 128, c.stream) == cuda::kSuccess);
    for (int i = 0; i < 10; ++i) CHECK(c.launch(function, arguments) == cuda::kSuccess);
    CHECK(c.d.cuEventRecord(event, c.stream) == cuda::kSuccess);
    CHECK(c.d.cuStreamWaitEvent(other, event, 0) == cuda::kSuccess);
    float result = 0;
    CHECK(c.d.cuMemcpyDtoHAsync_v2(&result, y, 4, other) == cuda::kSuccess);  // not pinned: waits
    CHECK(result == 10.0f);
    CHECK(c.d.cuEventQuery(event) == cuda::kSuccess);
    CHECK(c.d.cuEventSynchronize(event) == cuda::kSuccess);
    CHECK(c.d.cuEventDestroy_v2(event) == cuda::kSuccess);
    CHECK(c.d.cuStreamDestroy_v2(other) == cuda::kSuccess);
  }
}

TEST_CASE("CUDA: the fake driver fails when it is told to") {
  {
    OwnContext c("out_of_memory_at=2,memory_mb=1");
    c.allocate(100);
    cuda::DeviceAddress address = 0;
    CHECK(c.d.cuMemAlloc_v2(&address, 100) == cuda::kOutOfMemory);
    c.allocate(100);
    CHECK(c.d.cuMemAlloc_v2(&address, 2 << 20) == cuda::kOutOfMemory);
    std::size_t free = 0, total = 0;
    CHECK(c.d.cuMemGetInfo_v2(&free, &total) == cuda::kSuccess);
    CHECK(total - free == 1024);
  }
  OwnContext c("launch_error_at=2,error=719");
  register_in_fake_cuda("add", add_to_each, {sizeof(float*), sizeof(float)});
  cuda::DeviceAddress y = c.allocate(128);
  float by = 1.0f;
  void* arguments[] = {&y, &by};
  const cuda::FunctionHandle function = c.function("add");
  CHECK(c.launch(function, arguments) == cuda::kSuccess);
  CHECK(c.d.cuStreamSynchronize(c.stream) == cuda::kSuccess);
  CHECK(c.launch(function, arguments) == cuda::kSuccess);  // it fails later
  CHECK(c.d.cuStreamSynchronize(c.stream) == cuda::kLaunchFailed);
  cuda::DeviceAddress address = 0;
  CHECK(c.d.cuMemAlloc_v2(&address, 100) == cuda::kLaunchFailed);
}

TEST_CASE("CUDA: the fake driver refuses what a GPU refuses") {
  OwnContext c;
  cuda::ModuleHandle module = nullptr;
  CHECK(c.d.cuModuleLoadData(&module, "no image") == cuda::kInvalidImage);
  CHECK(c.d.cuModuleLoadData(&module, fake_cuda::kImage) == cuda::kSuccess);
  cuda::FunctionHandle found = nullptr;
  CHECK(c.d.cuModuleGetFunction(&found, module, "nobody registered this") == cuda::kNotFound);
  CHECK(c.d.cuModuleUnload(module) == cuda::kSuccess);
  register_in_fake_cuda("add", add_to_each, {sizeof(float*), sizeof(float)});
  const cuda::FunctionHandle function = c.function("add");
  cuda::DeviceAddress y = c.allocate(128);
  float by = 1.0f;
  void* arguments[] = {&y, &by};
  for (unsigned threads : {0u, 1025u})
    CHECK(c.d.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, c.stream, arguments, nullptr) ==
          cuda::kInvalidValue);
  // A thread has no context before it takes one.
  std::thread([&] {
    cuda::DeviceAddress address = 0;
    CHECK(c.d.cuMemAlloc_v2(&address, 100) == cuda::kInvalidContext);
  }).join();
  // A kernel that is given memory that was freed.
  CHECK(c.d.cuMemFree_v2(y) == cuda::kSuccess);
  CHECK(c.launch(function, arguments) == cuda::kSuccess);
  CHECK(c.d.cuStreamSynchronize(c.stream) == cuda::kIllegalAddress);
}
