// Convolutions by cuDNN, as the tests' library stands in for it (tests/fake_cuda/cudnn.cpp): which
// engine is taken, what plans keep, and which mistakes would be found.
#include "devices/cuda/convolutions.hpp"

#include <doctest/doctest.h>

#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "tests/contains.hpp"
#include "tests/devices/cuda/fake_driver.hpp"

namespace troupe::test {
namespace {

using namespace cuda;

Search both() {
  Search search = fake_cuda_search();
  search.folders.push_back(build_dir() + "/fake-cudnn");
  return search;
}

// What the library counts, by its function's name.
std::size_t counted(const char* name) {
  const auto library = Library::open({"libcudnn.so.9"}, both());
  return reinterpret_cast<std::size_t (*)()>(library->find(name))();
}
std::size_t descriptors() { return counted("troupe_fake_cudnn_descriptors"); }

// 1 x 3 x 3 x 1 by 2 x 2 x 1 x 1, of integers, so that sums are exact in any order.
DnnConvolution small(DType dtype = DType::f32) {
  DnnConvolution c;
  c.dtype = dtype;
  c.in = {3, 3}, c.filter = {2, 2}, c.out = {3, 3}, c.pad_after = {1, 1};
  return c;
}
const std::vector<float> kX = {1, 2, 3, 4, 5, 6, 7, 8, 9}, kFilter = {1, 10, 100, 1000};
const std::vector<float> kY = {5421, 6532, 603, 8754, 9865, 906, 87, 98, 9};

// A GPU of the fake driver with memory for the tensors of small(), and two streams.
struct ConvolvingGpu {
  explicit ConvolvingGpu(const std::string& fake = "check=1",
                         Convolutions::Options options = {.memory = std::size_t{1} << 30})
      : environment(fake), context(Context::make(open_driver(both()).value(), 0).value()) {
    context->enter();
    fake_reports();
    for (StreamHandle& stream : streams)
      REQUIRE(d().cuStreamCreateWithPriority(&stream, kStreamNonBlocking, 0) == kSuccess);
    REQUIRE(d().cuEventCreate(&event, kEventDisableTiming) == kSuccess);
    for (DeviceAddress* address : {&x, &filter, &y})
      REQUIRE(d().cuMemAlloc_v2(address, 4096) == kSuccess);
    REQUIRE(d().cuMemAlloc_v2(&space, 4096) == kSuccess);
    void* data = nullptr;
    REQUIRE(d().cuMemHostAlloc(&data, 4096, 0) == kSuccess);
    pinned = static_cast<float*>(data);
    options.alone = true;
    convolutions = Convolutions::make(open_cudnn(both()).value(), context, options).value();
  }
  ~ConvolvingGpu() {
    context->enter();
    for (const StreamHandle stream : streams) d().cuStreamSynchronize(stream);
    convolutions.reset();
    d().cuEventDestroy_v2(event);
    for (const StreamHandle stream : streams) d().cuStreamDestroy_v2(stream);
    for (const DeviceAddress address : {x, filter, y, space}) d().cuMemFree_v2(address);
    d().cuMemFreeHost(pinned);
  }
  const Driver& d() const { return context->driver(); }

  void upload(DeviceAddress to, const std::vector<float>& from, StreamHandle stream) {
    std::copy(from.begin(), from.end(), pinned);
    CHECK(d().cuMemcpyHtoDAsync_v2(to, pinned, from.size() * 4, stream) == kSuccess);
    CHECK(d().cuStreamSynchronize(stream) == kSuccess);
  }
  std::vector<float> download(StreamHandle stream) {
    CHECK(d().cuMemcpyDtoHAsync_v2(pinned, y, kY.size() * 4, stream) == kSuccess);
    CHECK(d().cuStreamSynchronize(stream) == kSuccess);
    return {pinned, pinned + kY.size()};
  }
  Expected<Convolutions::PlanPtr> plan(const DnnConvolution& convolution) {
    return convolutions->plan(convolution, [](const ConvolutionPlan&) -> Expected<double> {
      FAIL("one is measured");
      return 0.0;
    });
  }
  static void* at(DeviceAddress address) { return reinterpret_cast<void*>(address); }
  Status run(const ConvolutionPlan& plan, StreamHandle stream) {
    return convolutions->run(Convolutions::Turn(*convolutions), plan, operands(), at(space),
                             stream);
  }
  Expected<double> time(const ConvolutionPlan& plan, StreamHandle stream) {
    return convolutions->time(Convolutions::Turn(*convolutions), plan, operands(), at(space),
                              stream);
  }
  DnnOperands operands() const { return {at(x), at(filter), at(y)}; }

  FakeCuda environment;
  ContextPtr context;
  StreamHandle streams[2] = {};
  EventHandle event = nullptr;
  DeviceAddress x = 0, filter = 0, y = 0, space = 0;
  float* pinned = nullptr;
  std::unique_ptr<Convolutions> convolutions;
};

}  // namespace

TEST_CASE("CUDA: of cuDNN's engines an exact and deterministic one is taken that fits") {
  ConvolvingGpu gpu;
  // Those before round f32, differ from run to run, need too much memory, or cannot be made.
  CHECK((*gpu.plan(small()))->engine() == 7);
  CHECK((*gpu.plan(small()))->workspace() == 36);
  // Tensor cores have these types.
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16})
    CHECK((*gpu.plan(small(dtype)))->engine() == 4);
  // f32 is TF32 there.
  ConvolvingGpu rounding("check=1", {.memory = std::size_t{1} << 30, .tf32 = true});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    CHECK((*rounding.plan(small(dtype)))->engine() == 4);
  // An eighth of the memory is less than that workspace: the fallback needs none.
  ConvolvingGpu tiny("check=1", {.memory = 256});
  CHECK((*tiny.plan(small()))->engine() == 8);
  // Propagating NaN is exact; what a later library warns of may not be.
  for (const int note : {9, 10}) {
    const EnvironmentVariable noted("TROUPE_FAKE_CUDNN", "note=" + std::to_string(note));
    ConvolvingGpu warned;
    CHECK((*warned.plan(small()))->engine() == (note == 9 ? 7 : 8));
  }
  for (const int engine : {1, 2, 3, 4, 5, 6}) {
    const EnvironmentVariable only("TROUPE_FAKE_CUDNN", "engine=" + std::to_string(engine));
    ConvolvingGpu without;
    const Status status = without.plan(small()).status();
    CHECK(status.code() == Code::unimplemented);
    CHECK(contains(status.message(), "no exact and deterministic way"));
    CHECK(contains(status.message(),
                   ": cudnnBackendFinalize: CUDNN_STATUS_NOT_SUPPORTED (descriptor 5)") ==
          (engine == 6));
  }
}

TEST_CASE("CUDA: plans of convolutions are made once, and leave nothing behind") {
  const std::size_t before = descriptors();
  {
    ConvolvingGpu gpu;
    const auto plan = *gpu.plan(small());
    CHECK(*gpu.plan(small()) == plan);
    DnnConvolution other = small();
    other.align_x = 4;
    CHECK(*gpu.plan(other) != plan);
    std::vector<Convolutions::PlanPtr> found(4);
    std::vector<std::thread> threads;
    other.align_y = 4;
    for (auto& one : found) threads.emplace_back([&] { one = *gpu.plan(other); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& one : found) CHECK(one == found[0]);
    // What is refused for good is not asked again; what failed is.
    DnnConvolution refused = small(), failed = small();
    refused.images = 2, failed.images = 3;
    {
      const EnvironmentVariable none("TROUPE_FAKE_CUDNN", "none=1");
      CHECK(gpu.plan(refused).status().code() == Code::unimplemented);
    }
    CHECK(gpu.plan(refused).status().code() == Code::unimplemented);
    {
      const EnvironmentVariable broken("TROUPE_FAKE_CUDNN", "heuristics=5000");
      CHECK(gpu.plan(failed).status().code() == Code::internal);
    }
    CHECK(gpu.plan(failed).ok());
    // So it is where a plan cannot be made for another reason than that it is not supported.
    for (const auto& [setting, code] : {std::pair{"plan=4004", Code::resource_exhausted},
                                        {"plan=5000", Code::internal},
                                        {"plan=2000", Code::unimplemented}}) {
      const char* const plan = setting;
      CAPTURE(plan);
      ++failed.images;
      {
        const EnvironmentVariable broken("TROUPE_FAKE_CUDNN", plan);
        CHECK(gpu.plan(failed).status().code() == code);
      }
      const auto again = gpu.plan(failed);
      REQUIRE_MESSAGE(again.ok(), again.status().text());
      CHECK((*again)->engine() == 7);
    }
    // The plan outlives what is known of others.
    gpu.upload(gpu.x, kX, gpu.streams[0]);
    gpu.upload(gpu.filter, kFilter, gpu.streams[0]);
    CHECK(gpu.run(*plan, gpu.streams[0]).ok());
    CHECK(gpu.download(gpu.streams[0]) == kY);
    CHECK(fake_reports().empty());
  }
  CHECK(descriptors() == before);
}

TEST_CASE("CUDA: a convolution that does not wait for its operands is reported") {
  for (const bool waits : {true, false}) {
    CAPTURE(waits);
    ConvolvingGpu gpu;
    const auto plan = *gpu.plan(small());
    gpu.upload(gpu.x, kX, gpu.streams[0]);
    gpu.upload(gpu.filter, kFilter, gpu.streams[0]);
    CHECK(gpu.run(*plan, gpu.streams[0]).ok());  // writes y and the workspace
    if (waits) {
      CHECK(gpu.d().cuEventRecord(gpu.event, gpu.streams[0]) == kSuccess);
      CHECK(gpu.d().cuStreamWaitEvent(gpu.streams[1], gpu.event, 0) == kSuccess);
    }
    CHECK(gpu.run(*plan, gpu.streams[1]).ok());
    CHECK(gpu.download(gpu.streams[1]) == kY);
    CHECK(gpu.d().cuStreamSynchronize(gpu.streams[0]) == kSuccess);
    CHECK(fake_reports().empty() == waits);
  }
}

TEST_CASE("CUDA: paddings at the wrong end, and layouts of another order, are found") {
  ConvolvingGpu gpu;
  gpu.upload(gpu.x, kX, gpu.streams[0]);
  gpu.upload(gpu.filter, kFilter, gpu.streams[0]);
  DnnConvolution turned = small();
  std::swap(turned.pad_before, turned.pad_after);
  CHECK(gpu.run(**gpu.plan(turned), gpu.streams[0]).ok());
  CHECK(gpu.download(gpu.streams[0]) != kY);
  DnnConvolution missing = small();
  missing.pad_after = {0, 0};
  const Status mismatch = gpu.plan(missing).status();
  CHECK(contains(mismatch.text(), "cudnnBackendFinalize: CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH"));
}

TEST_CASE("CUDA: what a run of cuDNN must not be given is refused") {
  ConvolvingGpu gpu;
  const auto plan = *gpu.plan(small());
  const auto run = [&](const DnnOperands& operands, void* space) {
    const Convolutions::Turn turn(*gpu.convolutions);
    return gpu.convolutions->run(turn, *plan, operands, space, gpu.streams[0]).text();
  };
  const void *x = ConvolvingGpu::at(gpu.x), *filter = ConvolvingGpu::at(gpu.filter),
             *y = ConvolvingGpu::at(gpu.y);
  CHECK(contains(run({x, filter, nullptr}, ConvolvingGpu::at(gpu.space)), "NULL_POINTER"));
  CHECK(contains(run({x, filter, y}, nullptr), "NULL_POINTER"));
  CHECK(contains(run({x, filter, y}, ConvolvingGpu::at(gpu.space + 64)), "MISALIGNED_POINTER"));
  CHECK(contains(run({ConvolvingGpu::at(gpu.x + 4), filter, y}, ConvolvingGpu::at(gpu.space)),
                 "MISALIGNED_POINTER"));
  // Memory of the host shows when it runs.
  CHECK(run({gpu.pinned, filter, y}, ConvolvingGpu::at(gpu.space)) == "ok");
  CHECK(gpu.d().cuStreamSynchronize(gpu.streams[0]) == kIllegalAddress);
}

TEST_CASE("CUDA: of measured plans the fastest is taken, once, and kept on disk") {
  char folder[] = "/tmp/troupe-choices-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const Convolutions::Options options{
      .memory = std::size_t{1} << 30, .measures = true, .kept = ImageCache(folder)};
  // Engines 7 and 8 may be taken.
  std::vector<std::int64_t> tried;
  const auto plan = [&](ConvolvingGpu& gpu, const DnnConvolution& c, std::int64_t best) {
    tried.clear();
    return (*gpu.convolutions->plan(c,
                                    [&](const ConvolutionPlan& p) -> Expected<double> {
                                      tried.push_back(p.engine());
                                      if (best == 0) return unimplemented("none can be measured");
                                      return p.engine() == best ? 1.5 : 2.5;
                                    }))
        ->engine();
  };
  using Engines = std::vector<std::int64_t>;
  const auto files = [&] { return std::distance(std::filesystem::directory_iterator(folder), {}); };
  DnnConvolution other = small();
  other.images = 2;
  {
    ConvolvingGpu gpu("", options);
    CHECK(plan(gpu, small(), 8) == 8);
    CHECK(tried == Engines{7, 8});
    CHECK(plan(gpu, small(), 7) == 8);
    CHECK(tried.empty());
    CHECK(plan(gpu, other, 7) == 7);
    CHECK(files() == 2);
    other.images = 3;
    CHECK(plan(gpu, other, 0) == 7);  // as without
    CHECK(files() == 2);
    // An error ends it, and is not remembered.
    other.images = 4;
    const auto fails = [&](const ConvolutionPlan& p) -> Expected<double> {
      if (p.engine() == 8) return unavailable("the GPU has failed");
      return 1.5;
    };
    CHECK(gpu.convolutions->plan(other, fails).status().code() == Code::unavailable);
    CHECK(files() == 2);
    CHECK(plan(gpu, other, 8) == 8);
  }
  {
    ConvolvingGpu again("", options);
    CHECK(plan(again, small(), 7) == 8);
    CHECK(tried.empty());
  }
  {
    ConvolvingGpu smaller("", {.memory = 1 << 20, .measures = true, .kept = ImageCache(folder)});
    CHECK(plan(smaller, small(), 7) == 7);  // another list
    CHECK(tried == Engines{7, 8});
  }
  for (const auto& file : std::filesystem::directory_iterator(folder))
    std::ofstream(file.path()) << "8 8";
  ConvolvingGpu damaged("", options);
  CHECK(plan(damaged, small(), 7) == 7);
  CHECK(tried == Engines{7, 8});
  std::filesystem::remove_all(folder);
}

TEST_CASE("CUDA: what another process has chosen while plans are measured is taken") {
  char folder[] = "/tmp/troupe-choices-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const Convolutions::Options options{
      .memory = std::size_t{1} << 30, .measures = true, .kept = ImageCache(folder)};
  ConvolvingGpu gpu("", options), other("", options);
  const auto prefer = [](std::int64_t engine) {
    return [engine](const ConvolutionPlan& p) -> Expected<double> {
      return p.engine() == engine ? 1.5 : 2.5;
    };
  };
  const auto plan =
      gpu.convolutions->plan(small(), [&](const ConvolutionPlan& p) -> Expected<double> {
        CHECK((*other.convolutions->plan(small(), prefer(8)))->engine() == 8);
        return prefer(7)(p);
      });
  CHECK((*plan)->engine() == 8);
  ConvolvingGpu later("", options);
  CHECK((*later.convolutions->plan(small(), prefer(7)))->engine() == 8);
  std::filesystem::remove_all(folder);
}

TEST_CASE("CUDA: a plan is timed by runs, in order") {
  ConvolvingGpu gpu;
  const auto plan = *gpu.plan(small());
  gpu.upload(gpu.x, kX, gpu.streams[0]);
  gpu.upload(gpu.filter, kFilter, gpu.streams[0]);
  const auto took = gpu.time(*plan, gpu.streams[0]);
  REQUIRE_MESSAGE(took.ok(), took.status().text());
  CHECK(*took >= 0);
  CHECK(gpu.download(gpu.streams[0]) == kY);
  CHECK(fake_reports().empty());
  const EnvironmentVariable broken("TROUPE_FAKE_CUDNN", "execute=5000");
  CHECK_FALSE(gpu.time(*plan, gpu.streams[0]).ok());
}

TEST_CASE("CUDA: what was issued before a plan could not be timed is waited for") {
  ConvolvingGpu gpu("delay_us=20000,seed=3");
  const auto plan = *gpu.plan(small());
  gpu.upload(gpu.x, kX, gpu.streams[0]);
  gpu.upload(gpu.filter, kFilter, gpu.streams[0]);
  const std::size_t before = counted("troupe_fake_cudnn_computed");
  const EnvironmentVariable broken("TROUPE_FAKE_CUDNN", "good=3,execute=5000");
  CHECK(contains(gpu.time(*plan, gpu.streams[0]).status().text(), "EXECUTION_FAILED"));
  CHECK(counted("troupe_fake_cudnn_computed") == before + 3);
}

TEST_CASE("CUDA: a library of cuDNN's name that lacks a function, or is none, is unusable") {
  const std::string folder = std::string(build_dir()) + "/fake-cublaslt";
  const auto other = Library::open({"libcublasLt.so.13"}, {{folder}, false});
  REQUIRE(other.ok());
  CudnnTable table;
  CHECK(fill(table, *other) == std::string("cudnnGetVersion"));
}

}  // namespace troupe::test
