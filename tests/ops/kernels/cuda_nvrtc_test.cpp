// Device code and NVIDIA's compiler, where it is installed.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "devices/cuda/nvrtc.hpp"
#include "ops/cuda/device_code.hpp"
#include "ops/cuda/functions.hpp"

namespace troupe {
namespace {

std::string program_of(const std::vector<std::string>& types) {
  std::string text(cuda::device_code().prologue);
  for (const std::string& type : types)
    text += "extern \"C\" __global__ void " + cuda::function_name(type) + "(const " + type +
            "::Args args) { " + type + "::run(args); }\n";
  return text;
}

void compile(const std::vector<std::string>& types, const std::vector<std::string>& targets) {
  const auto nvrtc = cuda::open_nvrtc(cuda::Search::standard());
  if (!nvrtc.ok()) {
    CHECK(nvrtc.status().code() == Code::not_found);
    MESSAGE("skipped: ", nvrtc.status().message(), " (wheel nvidia-cuda-nvrtc)");
    return;
  }
  for (const std::string& architecture : targets) {
    const auto cubin =
        nvrtc->compile(program_of(types), {}, architecture, cuda::device_code().files);
    CHECK_MESSAGE(cubin.ok(), architecture << ": " << cubin.status().text());
    if (!cubin.ok()) continue;
    for (const std::string& type : types)
      CHECK(cubin->image.find(cuda::function_name(type)) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("CUDA: functions of different types have different names") {
  std::set<std::string> names;
  const auto types = cuda::all_functions(ops::builtin());
  for (const std::string& type : types) names.insert(cuda::function_name(type));
  CHECK(types.size() > 500);
  CHECK(names.size() == types.size());
}

// One for each template and formula.
std::vector<std::string> kinds() {
  std::vector<std::string> some;
  std::string last;
  for (const std::string& type : cuda::all_functions(ops::builtin()))
    if (const std::string kind = type.substr(0, type.find(',')); kind != last) {
      some.push_back(type);
      last = kind;
    }
  return some;
}

TEST_CASE("CUDA: NVRTC compiles device code") {
  const std::vector<std::string> all = kinds();
  compile({all.front(), all.back()}, {"sm_90"});
}

TEST_CASE("CUDA: NVRTC compiles functions of each kind, for each architecture [slow]") {
  compile(kinds(), {"sm_80", "sm_90", "sm_100"});
}

}  // namespace troupe
