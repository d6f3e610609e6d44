// What a device does to have the functions that kernels launch: compiled together, kept on disk.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include "core/log.hpp"
#include "devices/cuda/compiler.hpp"
#include "devices/cuda/gpu_kernel.hpp"
#include "devices/cuda/image_cache.hpp"
#include "tests/contains.hpp"
#include "tests/devices/cuda/cuda_subject.hpp"

namespace troupe {
namespace {

namespace fs = std::filesystem;
using test::contains;

constexpr char kAdd[] =
    "troupe::device::Elementwise<troupe::formula::Add, troupe::device::f32, troupe::device::f32, "
    "troupe::device::f32>";
constexpr char kNeg[] =
    "troupe::device::Elementwise<troupe::formula::Neg, troupe::device::f32, troupe::device::f32>";

constexpr cuda::DeviceCode::File kFiles[] = {{"a.hpp", "// one\n"}};
constexpr cuda::DeviceCode::File kOtherFiles[] = {{"a.hpp", "// two\n"}};
constexpr cuda::DeviceCode::File kNewFiles[] = {
    {"new.hpp", "inline float f(int i) { return __builtin_bit_cast(float, i); }\n"}};
constexpr cuda::DeviceCode kCode{kFiles, ""}, kOtherCode{kOtherFiles, ""}, kNewCode{kNewFiles, ""};

// A kernel that wants functions and launches none. The fake compiler looks at names alone.
class Wants final : public cuda::GpuKernel {
 public:
  explicit Wants(std::vector<std::string> types, const cuda::DeviceCode& code = kCode)
      : code_(code) {
    for (std::string& type : types) functions_.push_back({std::move(type)});
  }
  std::span<cuda::GpuFunction> functions() override { return functions_; }
  const cuda::DeviceCode& code() const override { return code_; }
  Status compute(KernelContext&) override { return ok_status(); }
  bool ready() const {
    bool all = true;
    for (const cuda::GpuFunction& function : functions_) all &= function.handle != nullptr;
    return all;
  }

 private:
  const cuda::DeviceCode& code_;
  std::vector<cuda::GpuFunction> functions_;
};

const DeviceName kName = DeviceName::parse("/job:worker/task:0/cuda:0").value();

std::unique_ptr<CudaDevice> device_with(cuda::Search search) {
  CudaOptions options;
  options.search = std::move(search);
  return make_cuda_device(kName, std::move(options)).value();
}
std::unique_ptr<CudaDevice> device_with_compiler() {
  return device_with({{build_dir() + "/fake-cuda", build_dir() + "/fake-nvrtc"}, false});
}

Status prepare(Device& device, std::initializer_list<Kernel*> kernels) {
  return device.prepare(std::vector<Kernel*>(kernels));
}

// A folder that is gone in the end.
struct Folder {
  Folder() {
    char name[] = "/tmp/troupe_cuda_XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(path)) all.push_back(entry.path());
    return all;
  }
  std::string path;
};

}  // namespace

TEST_CASE("CUDA: functions are named as programs and profilers show them") {
  CHECK(cuda::function_name(kAdd) == "Elementwise_Add_f32_f32_f32");
  CHECK(cuda::function_name("troupe::device::Elementwise<troupe::formula::Convert<bool>, bool, "
                            "troupe::device::f16>") == "Elementwise_Convert_bool_bool_f16");
}

TEST_CASE("CUDA: what kernels need is compiled once for all plans") {
  const test::FakeCuda fake("");
  auto device = device_with_compiler();
  Wants add({kAdd}), both({kAdd, kNeg}), again({kNeg});
  REQUIRE(prepare(*device, {&add, &both}).ok());
  CHECK(device->compiled_functions() == 2);
  CHECK(add.ready());
  CHECK(both.ready());
  REQUIRE(prepare(*device, {&again}).ok());
  CHECK(again.ready());
  CHECK(device->compiled_functions() == 2);
}

TEST_CASE("CUDA: functions that are loaded are found while others are compiled") {
  // A kernel that is asked for its functions while they are compiled, and takes its time.
  class Slow final : public cuda::GpuKernel {
   public:
    std::span<cuda::GpuFunction> functions() override {
      if (!asked_.exchange(true)) {
        begun.set_value();
        go.get_future().wait();
      }
      return {};
    }
    const cuda::DeviceCode& code() const override { return kCode; }
    Status compute(KernelContext&) override { return ok_status(); }
    std::promise<void> begun, go;

   private:
    std::atomic<bool> asked_{false};
  };
  const test::FakeCuda fake("");
  auto device = device_with_compiler();
  Wants add({kAdd});
  REQUIRE(prepare(*device, {&add}).ok());
  Slow slow;
  std::thread loads([&] { CHECK(prepare(*device, {&slow}).ok()); });
  slow.begun.get_future().wait();
  CHECK(device->prepared(kAdd) != nullptr);  // it would wait for ever
  CHECK(device->prepared(kNeg) == nullptr);
  CHECK(device->compiled_functions() == 1);
  slow.go.set_value();
  loads.join();
}

TEST_CASE("CUDA: a missing compiler is a status that names the wheel") {
  const test::FakeCuda fake("");
  auto device = device_with(test::fake_cuda_search());
  Wants add({kAdd}), nothing({});
  const Status missing = prepare(*device, {&add});
  CHECK(missing.code() == Code::failed_precondition);
  CHECK(contains(missing.message(), "kernels for GPUs are compiled by NVRTC, which is missing: "));
  CHECK(contains(missing.message(), "the wheel nvidia-cuda-nvrtc has it"));
  CHECK(prepare(*device, {&nothing}).ok());
  const test::FakeCuda old("version=12040");
  auto older = device_with_compiler();
  const Status too_new = prepare(*older, {&add});
  CHECK(contains(too_new.message(), "makes code that the driver of CUDA 12.4 does not load"));
}

TEST_CASE("CUDA: what does not compile is told with the compiler's words") {
  const test::FakeCuda fake("");
  auto device = device_with_compiler();
  Wants unknown({"troupe::device::Nothing<float>"}), add({kAdd});
  const Status refused = prepare(*device, {&unknown, &add});
  CHECK(refused.code() == Code::invalid_argument);
  CHECK(contains(refused.message(), "no such function: Nothing_float"));
  CHECK_FALSE(add.ready());
  CHECK(prepare(*device, {&add}).ok());
}

// The same check has every test of device code fail that uses such a word.
TEST_CASE("CUDA: words that the oldest compiler does not know are refused") {
  const test::FakeCuda fake("");
  auto device = device_with_compiler();
  Wants add({kAdd}, kNewCode);
  const Status refused = prepare(*device, {&add});
  CHECK(refused.code() == Code::invalid_argument);
  CHECK(contains(refused.message(),
                 "new.hpp: error: identifier \"__builtin_bit_cast\" is undefined"));
}

TEST_CASE("CUDA: a function that is on disk is not compiled again, whatever plan it is for") {
  const test::FakeCuda fake("");
  const Folder folder;
  const test::EnvironmentVariable cache("TROUPE_CUDA_CACHE", folder.path);
  const auto compiled = [](std::initializer_list<Kernel*> kernels) {
    auto device = device_with_compiler();
    CHECK(prepare(*device, kernels).ok());
    return device->compiled_functions();
  };
  Wants add({kAdd}), neg({kNeg}), other({kAdd}, kOtherCode);
  Wants both({kAdd, kNeg});
  CHECK(compiled({&add}) == 1);
  REQUIRE(folder.files().size() == 1);
  CHECK(compiled({&add}) == 0);
  CHECK(add.ready());
  CHECK(compiled({&neg, &both}) == 1);
  CHECK(both.ready());
  CHECK(compiled({&other}) == 1);  // of other text
  CHECK(folder.files().size() == 3);
}

TEST_CASE("CUDA: functions that were compiled ahead of time are found by a device") {
  const test::FakeCuda fake("");
  const Folder folder;
  const test::EnvironmentVariable variable("TROUPE_CUDA_CACHE", folder.path);
  const cuda::Compiler compiler(cuda::open_nvrtc({{build_dir() + "/fake-nvrtc"}, false}, 0).value(),
                                cuda::ImageCache(folder.path));
  const cuda::Compiler::Function functions[] = {{&kCode, kAdd}, {&kCode, kNeg}};
  for (const char* architecture : {"sm_80", "sm_90"})
    for (const auto& image : compiler.measured(functions, architecture)) {
      REQUIRE(image.ok());
      CHECK_FALSE(image->cached);
    }
  CHECK(folder.files().size() == 4);
  auto device = device_with_compiler();  // of sm_90
  Wants both({kAdd, kNeg});
  REQUIRE(prepare(*device, {&both}).ok());
  CHECK(device->compiled_functions() == 0);
}

TEST_CASE(
    "CUDA: a GPU that is newer than the compiler gets PTX, and one that is too old an error") {
  const Folder folder;
  const test::EnvironmentVariable cache("TROUPE_CUDA_CACHE", folder.path);
  const auto prepared_on = [](const std::string& architecture) {
    const test::FakeCuda fake("architecture=" + architecture);
    auto device = device_with_compiler();
    Wants add({kAdd});
    return prepare(*device, {&add});
  };
  CHECK(prepared_on("103").ok());
  REQUIRE(folder.files().size() == 1);
  CHECK(folder.files()[0].filename().string().starts_with("sm_103-"));
  fs::remove(folder.files()[0]);
  const Status newer = prepared_on("131");
  REQUIRE_MESSAGE(newer.ok(), newer.text());
  REQUIRE(folder.files().size() == 1);
  CHECK(folder.files()[0].filename().string().starts_with("compute_121-"));
  const Status older = prepared_on("70");
  CHECK(older.code() == Code::failed_precondition);
  CHECK(contains(older.message(), "makes no code for GPUs as old as sm_70"));
}

TEST_CASE("CUDA: many functions are compiled by several threads, each by its name") {
  const test::FakeCuda fake("");
  std::vector<std::string> types;
  std::vector<cuda::Compiler::Function> functions;
  for (int i = 0; i < 200; ++i)
    types.push_back(i % 3 == 1 ? kAdd : "Unknown<" + std::to_string(i) + ">");
  for (const std::string& type : types) functions.push_back({&kCode, type});
  const cuda::Compiler compiler(cuda::open_nvrtc({{build_dir() + "/fake-nvrtc"}, false}, 0).value(),
                                cuda::ImageCache(""));
  const auto images = compiler.images(functions, "sm_90");
  REQUIRE(images.size() == types.size());
  for (std::size_t i = 0; i < images.size(); ++i) {
    CHECK(images[i].ok() == (i % 3 == 1));
    if (!images[i].ok())
      CHECK(contains(images[i].status().message(), "Unknown_" + std::to_string(i)));
  }
  CHECK(compiler.images({}, "sm_90").empty());
}

TEST_CASE(
    "CUDA: a damaged file is compiled again, and a folder that cannot be written is no error") {
  const Folder folder;
  const cuda::ImageCache cache(folder.path + "/below");
  CHECK_FALSE(cache.read("key").has_value());
  const std::string image("image\0with a zero", 17);
  cache.write("key", image);
  CHECK(cache.read("key") == image);
  for (const char* damage : {"x", "", "troupe image 1 0000000000000000\nimage"}) {
    const LogLevel before = log_level();
    set_log_level(LogLevel::off);
    std::ofstream(cache.folder() + "/key", std::ios::binary) << damage;
    CHECK_FALSE(cache.read("key").has_value());
    set_log_level(before);
  }
  cache.write("key", image);
  CHECK(cache.read("key") == image);
  // What is added does not replace what another has, unless that is damaged.
  CHECK(cache.add("choice", "first") == "first");
  CHECK(cache.add("choice", "second") == "first");
  CHECK(cache.read("choice") == "first");
  CHECK(std::distance(fs::directory_iterator(cache.folder()), {}) == 2);

  const LogLevel before = log_level();
  set_log_level(LogLevel::off);
  const cuda::ImageCache nowhere("/proc/no/such/folder");
  nowhere.write("key", image);
  CHECK(nowhere.add("key", "first") == "first");
  std::ofstream(cache.folder() + "/choice", std::ios::binary) << "x";
  CHECK(cache.add("choice", "second") == "second");
  CHECK(cache.read("choice") == "second");
  set_log_level(before);
  CHECK_FALSE(nowhere.read("key").has_value());
  CHECK_FALSE(cuda::ImageCache("").read("key").has_value());
}

TEST_CASE("CUDA: the folder of programs is the user's, unless another is named") {
  const test::EnvironmentVariable home("HOME", "/home/me"), none("TROUPE_CUDA_CACHE", "");
  {
    const test::EnvironmentVariable xdg("XDG_CACHE_HOME", "");
    CHECK(cuda::ImageCache::standard(true).folder() == "/home/me/.cache/troupe/cuda");
    CHECK(cuda::ImageCache::standard(false).folder().empty());
  }
  const test::EnvironmentVariable xdg("XDG_CACHE_HOME", "/cache");
  CHECK(cuda::ImageCache::standard(true).folder() == "/cache/troupe/cuda");
  const test::EnvironmentVariable named("TROUPE_CUDA_CACHE", "/mine");
  CHECK(cuda::ImageCache::standard(false).folder() == "/mine");
  const test::EnvironmentVariable off("TROUPE_CUDA_CACHE", "-");
  CHECK(cuda::ImageCache::standard(true).folder().empty());
}

TEST_CASE("CUDA: a kernel whose device was not prepared fails") {
  const test::FakeCuda fake("");
  auto device = device_with_compiler();
  InlineLanes lanes;
  const KernelPlace place{.device = device.get(), .lanes = &lanes};
  KernelContext ctx({.place = &place});
  const cuda::GpuFunction function{kAdd};
  const Status status = cuda::launch(ctx, function, {}, nullptr);
  CHECK(status.code() == Code::internal);
  CHECK(contains(status.message(), "Elementwise_Add_f32_f32_f32"));
}

}  // namespace troupe
