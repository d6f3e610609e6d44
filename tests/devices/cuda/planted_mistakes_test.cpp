// Mistakes of host code, each with right results, which the fake driver reports all the same; and
// that it has nothing to say of the same code without the mistake.
#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <numeric>

#include "tests/contains.hpp"
#include "tests/devices/cuda/cuda_subject.hpp"

using namespace troupe;
using troupe::test::contains;
using troupe::test::fake_reports;

namespace {

constexpr std::size_t kBytes = 64;

// to = from + 1, of 16 numbers.
cuda::Result increase(const fake_cuda::Launched& launched) {
  static const auto touch = test::of_fake_cuda<fake_cuda::Touch>("troupe_fake_touch");
  auto* to = *static_cast<float* const*>(launched.arguments[0]);
  const auto* from = *static_cast<const float* const*>(launched.arguments[1]);
  touch(from, kBytes, 0);
  touch(to, kBytes, 1);
  for (std::size_t i = 0; i < kBytes / sizeof(float); ++i) to[i] = from[i] + 1;
  return cuda::kSuccess;
}

// GPU 0 with two streams, pinned memory and a kernel.
struct Streams {
  Streams()
      : environment("devices=2,check=1"), d(cuda::open_driver(test::fake_cuda_search()).value()) {
    for (int i = 0; i < 2; ++i) d.cuDevicePrimaryCtxRetain(&contexts[std::size_t(i)], i);
    enter(0);
    for (cuda::StreamHandle& stream : streams)
      REQUIRE(d.cuStreamCreateWithPriority(&stream, cuda::kStreamNonBlocking, 0) == cuda::kSuccess);
    REQUIRE(d.cuEventCreate(&event, cuda::kEventDisableTiming) == cuda::kSuccess);
    void* data = nullptr;
    REQUIRE(d.cuMemHostAlloc(&data, kBytes, 0) == cuda::kSuccess);
    pinned = static_cast<float*>(data);
    std::iota(pinned, pinned + kBytes / sizeof(float), 0.0f);
    test::register_in_fake_cuda("increase", increase, {sizeof(float*), sizeof(float*)});
    cuda::ModuleHandle module = nullptr;
    REQUIRE(d.cuModuleLoadData(&module, fake_cuda::kImage) == cuda::kSuccess);
    REQUIRE(d.cuModuleGetFunction(&function, module, "increase") == cuda::kSuccess);
    d.cuModuleUnload(module);
    fake_reports();  // of others
  }
  ~Streams() {
    enter(0);
    for (const cuda::StreamHandle stream : streams) d.cuStreamSynchronize(stream);
    d.cuEventDestroy_v2(event);
    for (const cuda::StreamHandle stream : streams) d.cuStreamDestroy_v2(stream);
    d.cuMemFreeHost(pinned);
    for (int i = 0; i < 2; ++i) d.cuDevicePrimaryCtxRelease_v2(i);
  }
  void enter(std::size_t gpu) { d.cuCtxSetCurrent(contexts[gpu]); }
  cuda::DeviceAddress make() {
    cuda::DeviceAddress address = 0;
    REQUIRE(d.cuMemAlloc_v2(&address, kBytes) == cuda::kSuccess);
    return address;
  }
  cuda::Result upload(int stream, cuda::DeviceAddress to) {
    return d.cuMemcpyHtoDAsync_v2(to, pinned, kBytes, streams[std::size_t(stream)]);
  }
  cuda::Result download(int stream, cuda::DeviceAddress from) {
    return d.cuMemcpyDtoHAsync_v2(pinned, from, kBytes, streams[std::size_t(stream)]);
  }
  cuda::Result launch(int stream, cuda::DeviceAddress to, cuda::DeviceAddress from) {
    void* arguments[] = {&to, &from};
    return d.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, streams[std::size_t(stream)], arguments,
                            nullptr);
  }
  // What stream `after` is given next comes after all that stream `before` has.
  void order(int before, int after) {
    CHECK(d.cuEventRecord(event, streams[std::size_t(before)]) == cuda::kSuccess);
    CHECK(d.cuStreamWaitEvent(streams[std::size_t(after)], event, 0) == cuda::kSuccess);
  }
  std::string found() {
    for (const cuda::StreamHandle stream : streams)
      CHECK(d.cuStreamSynchronize(stream) == cuda::kSuccess);
    return fake_reports();
  }

  test::FakeCuda environment;
  cuda::Driver d;
  std::array<cuda::ContextHandle, 2> contexts{};
  std::array<cuda::StreamHandle, 2> streams{};
  cuda::EventHandle event = nullptr;
  cuda::FunctionHandle function = nullptr;
  float* pinned = nullptr;
};

}  // namespace

TEST_CASE("CUDA: a missing wait for an event is reported, in each direction") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    Streams s;
    const cuda::DeviceAddress x = s.make(), y = s.make();
    CHECK(s.upload(0, x) == cuda::kSuccess);
    if (waits) s.order(0, 1);
    CHECK(s.launch(1, y, x) == cuda::kSuccess);
    const std::string uploaded = s.found();
    CHECK(contains(uploaded, "cuMemcpyHtoDAsync writes") == !waits);
    CHECK(contains(uploaded, "a kernel reads") == !waits);
    CHECK(uploaded.empty() == waits);
    CHECK(s.launch(1, x, y) == cuda::kSuccess);
    if (waits) s.order(1, 0);
    CHECK(s.download(0, x) == cuda::kSuccess);
    CHECK(contains(s.found(), "cuMemcpyDtoHAsync reads") == !waits);
  }
}

TEST_CASE("CUDA: memory that another stream still uses is reported when it is used anew") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    Streams s;
    const cuda::DeviceAddress block = s.make(), y = s.make();
    CHECK(s.launch(1, y, block) == cuda::kSuccess);
    // An allocator hands the block out again: nobody has freed it as the driver sees it.
    if (waits) s.order(1, 0);
    CHECK(s.upload(0, block) == cuda::kSuccess);
    CHECK(s.found().empty() == waits);
  }
}

TEST_CASE("CUDA: what the host has seen the end of is in order") {
  Streams s;
  const cuda::DeviceAddress x = s.make(), y = s.make();
  CHECK(s.upload(0, x) == cuda::kSuccess);
  CHECK(s.d.cuEventRecord(s.event, s.streams[0]) == cuda::kSuccess);
  CHECK(s.d.cuEventSynchronize(s.event) == cuda::kSuccess);
  CHECK(s.launch(1, y, x) == cuda::kSuccess);
  CHECK(s.found().empty());
}

TEST_CASE("CUDA: memory, streams and events of another GPU are refused") {
  Streams s;
  const cuda::DeviceAddress here = s.make();
  s.enter(1);
  const cuda::DeviceAddress there = s.make();
  CHECK(s.upload(0, there) == cuda::kInvalidHandle);
  s.enter(0);
  CHECK(fake_reports().empty());
  CHECK(s.upload(0, there) == cuda::kInvalidValue);
  CHECK(contains(fake_reports(), "an address of another GPU"));
  CHECK(s.download(0, there) == cuda::kInvalidValue);
  CHECK(contains(fake_reports(), "an address of another GPU"));
  CHECK(s.launch(0, here, there) == cuda::kSuccess);  // the mistake shows when it runs
  CHECK(s.d.cuStreamSynchronize(s.streams[0]) == cuda::kIllegalAddress);
  CHECK(contains(fake_reports(), "an address of another GPU"));
}
