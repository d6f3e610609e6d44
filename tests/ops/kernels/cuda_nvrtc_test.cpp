// Device code and NVIDIA's compiler, where it is installed.
#include <doctest/doctest.h>
#include <elf.h>

#include <cstring>
#include <optional>
#include <set>

#include "ops/cuda/device_code.hpp"
#include "ops/cuda/functions.hpp"
#include "ops/cuda/measure.hpp"

namespace troupe {
namespace {

// Nothing is left on disk. None, and the reason printed, without NVRTC.
std::optional<cuda::Compiler> compiler() {
  auto nvrtc = cuda::open_nvrtc(cuda::Search::standard(), 0);
  if (nvrtc.ok()) return cuda::Compiler(std::move(*nvrtc), cuda::ImageCache(""));
  CHECK(nvrtc.status().code() == Code::not_found);
  MESSAGE("skipped: ", nvrtc.status().message(), " (wheel nvidia-cuda-nvrtc)");
  return {};
}

void check(const std::vector<cuda::GpuFunction>& functions, const std::string& architecture) {
  const auto nvrtc = compiler();
  if (!nvrtc) return;
  for (const cuda::Measured& one : cuda::measure(*nvrtc, functions, architecture)) {
    CHECK_MESSAGE(one.fault.empty(), one.name << " for " << architecture << ": " << one.fault);
    CHECK(one.resources.registers > 0);
    CHECK(one.bytes > 1000);
  }
}

// One for each template and formula.
std::vector<cuda::GpuFunction> kinds() {
  std::vector<cuda::GpuFunction> some;
  std::string last;
  for (const cuda::GpuFunction& function : cuda::all_functions(ops::builtin()))
    if (const std::string kind = function.type.substr(0, function.type.find(',')); kind != last) {
      some.push_back(function);
      last = kind;
    }
  return some;
}

constexpr char kMinimumOfShorts[] =
    "troupe::device::ReduceRows<troupe::formula::MinOf, troupe::device::i16>";

}  // namespace

TEST_CASE("CUDA: functions of different types have different names") {
  std::set<std::string> names;
  const auto all = cuda::all_functions(ops::builtin());
  for (const cuda::GpuFunction& function : all) names.insert(cuda::function_name(function.type));
  CHECK(all.size() > 500);
  CHECK(names.size() == all.size());
}

TEST_CASE("CUDA: NVRTC compiles device code, and tells what it takes of a GPU") {
  const auto all = kinds();
  check({all.front(), all.back(), {kMinimumOfShorts}}, "sm_90");
}

TEST_CASE("CUDA: functions that take more than they may, or do not compile, are faults") {
  const auto nvrtc = compiler();
  if (!nvrtc) return;
  const auto measured = cuda::measure(
      *nvrtc, std::vector<cuda::GpuFunction>{{kMinimumOfShorts, 1}, {"troupe::device::Nothing"}},
      "sm_90");
  CHECK(measured[0].fault.find("registers, of at most 1") != std::string::npos);
  CHECK(measured[1].fault.find("nvrtcCompileProgram: NVRTC_ERROR_COMPILATION") !=
        std::string::npos);
  CHECK_FALSE(cuda::measure(*nvrtc, std::vector<cuda::GpuFunction>{{kMinimumOfShorts}}, "sm_1")[0]
                  .fault.empty());
}

// Of an image, which is an ELF file.
std::string section(const std::string& image, const std::string& name) {
  const auto at = [&](std::size_t offset, auto value) {
    REQUIRE(offset + sizeof value <= image.size());
    std::memcpy(&value, image.data() + offset, sizeof value);
    return value;
  };
  const auto file = at(0, Elf64_Ehdr());
  const auto header = [&](std::size_t i) {
    return at(file.e_shoff + i * sizeof(Elf64_Shdr), Elf64_Shdr());
  };
  const std::size_t names = header(file.e_shstrndx).sh_offset;
  for (std::size_t i = 0; i < file.e_shnum; ++i)
    if (const Elf64_Shdr its = header(i); image.c_str() + names + its.sh_name == name)
      return image.substr(its.sh_offset, its.sh_size);
  return {};
}

TEST_CASE("CUDA: to be told what a function takes does not change its code") {
  const auto nvrtc = compiler();
  if (!nvrtc) return;
  const cuda::Compiler::Function function[] = {{&cuda::device_code(), kMinimumOfShorts}};
  const std::string name = ".text." + cuda::function_name(kMinimumOfShorts);
  const std::string plain = section(nvrtc->images(function, "sm_90")[0]->bytes, name);
  CHECK(plain.size() > 100);
  CHECK(plain == section(nvrtc->measured(function, "sm_90")[0]->bytes, name));
}

TEST_CASE("CUDA: NVRTC compiles functions of each kind, for each architecture [slow]") {
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) check(kinds(), architecture);
}

}  // namespace troupe
