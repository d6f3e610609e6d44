// What `troupe kernels` prints, and what it refuses. The compiler is the tests' own, which compiles
// nothing: NVIDIA's is in tests/ops/kernels/cuda_nvrtc_test.cpp.
#include <doctest/doctest.h>

#include <filesystem>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"

namespace {

Ended kernels(const std::string& arguments, const std::string& compiler = {}) {
  return shell_command("TROUPE_CUDA_PATH=" + build_dir() + "/fake-nvrtc:- TROUPE_FAKE_NVRTC=" +
                       compiler + " " + troupe_program() + " kernels " + arguments);
}

}  // namespace

TEST_CASE("kernels prints what each function takes, for each architecture") {
  const auto all = kernels("MatMul --arch sm_80,sm_90 --output json").json();
  REQUIRE(all["functions"].size() == 12);
  CHECK(all["fake"] == true);
  CHECK(all["faults"] == 0);
  const auto& one = all["functions"][0];
  CHECK(one["function"] == "MatMul_bf16");
  CHECK(one["family"] == "MatMul");
  CHECK(one["architecture"] == "sm_80");
  CHECK(one["registers"] == 32);
  CHECK(one["budget"] == 128);
  CHECK(one["spilled"] == 0);
  REQUIRE(all["families"].size() == 2);
  CHECK(all["families"][1]["architecture"] == "sm_90");
  CHECK(all["families"][1]["functions"] == 6);
  Ended text = kernels("MatMul_f32 --arch sm_90");
  CHECK(text.code == 0);
  CHECK(contains(text.out, "MatMul_f32 "));
  CHECK(contains(text.out, "1 functions in "));
}

TEST_CASE("kernels fails when a function spills, takes too many registers, or is not told of") {
  for (const auto& [compiler, fault] :
       {std::pair{"spilled=4", "FAULT: spills 4 bytes"},
        {"registers=65", "FAULT: takes 65 registers, of at most 64"},
        {"silent=1", "FAULT: data_loss: it tells nothing"}}) {
    Ended ended = kernels("AddN_f32 --arch sm_90", compiler);
    CHECK(ended.code == 1);
    CHECK_MESSAGE(contains(ended.out, fault), ended.out);
    const auto told = kernels("AddN_f32 --arch sm_90 --output json", compiler);
    CHECK(told.code == 1);
    CHECK(told.json()["faults"] == 1);
  }
  CHECK(kernels("MatMul_f32 --arch sm_90", "registers=65").code == 0);  // which may have more
}

TEST_CASE(
    "kernels names the wheel of a missing compiler, and refuses names that it does not know") {
  Ended none = shell_command("TROUPE_CUDA_PATH=- " + troupe_program() + " kernels");
  CHECK(none.code == 1);
  CHECK(contains(none.err, "the wheel nvidia-cuda-nvrtc has it"));
  Ended unknown = kernels("Nothing");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "begins with 'Nothing'"));
}

TEST_CASE("kernels leaves what it compiles in a folder, one file for each function") {
  const Folder folder;
  CHECK(kernels("AddN --arch sm_80,sm_90 --cache " + folder.path).code == 0);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator(folder.path))
    ++files;
  CHECK(files == 16);
  CHECK(kernels("AddN --arch sm_80 --cache /proc/none").code == 1);
}
