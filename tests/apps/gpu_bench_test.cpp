// `troupe bench gpu` on the emulated GPU, and where there is none. Not run on hardware.
#include <doctest/doctest.h>

#include <set>

#include "tests/apps/command.hpp"

namespace {

Ended bench(const std::string& folders, const std::string& arguments,
            const std::string& fake = "") {
  return shell_command("TROUPE_CUDA_CACHE=- TROUPE_CUDA_PATH=" + folders + ":- TROUPE_FAKE_CUDA=" +
                       fake + " " + troupe_program() + " bench gpu --rounds 1 " + arguments);
}

std::string emulated() { return build_dir() + "/fake-cuda:" + build_dir() + "/fake-nvrtc"; }

// The names of the rows that `arguments` ask for; each is of the emulated GPU, and says so.
std::set<std::string> rows_of(const std::string& arguments) {
  Ended ended = bench(emulated(), arguments + " --output json");
  REQUIRE_MESSAGE(ended.code == 0, ended.err);
  std::set<std::string> names;
  for (const auto& row : ended.json()) {
    INFO(row.dump());
    names.insert(row["name"]);
    CHECK(row["value"].get<double>() > 0);
    CHECK(row["label"] == "emulated, not a GPU");
    CHECK(row["gpu:0"] == "Fake GPU, 1 GiB, sm_90");
    CHECK(row.contains("size") == (row["name"] != "gpu.step"));
    const bool beside_copy = row["name"] == "gpu.add" || row["name"] == "gpu.chain";
    CHECK((row["peer"] == "gpu.copy") == beside_copy);
  }
  return names;
}

}  // namespace

TEST_CASE("the benchmark of a GPU measures the emulated one, and says so of each row") {
  CHECK(rows_of("--only gpu.c") == std::set<std::string>{"gpu.copy", "gpu.chain"});
  CHECK(rows_of("--only gpu.launch") == std::set<std::string>{"gpu.launch", "gpu.launch_and_wait"});
  CHECK(rows_of("--only gpu.train.mlp") == std::set<std::string>{"gpu.train.mlp"});
  Ended text = bench(emulated(), "--only gpu.step");
  CHECK(text.code == 0);
  CHECK_MESSAGE(contains(text.out, "us        (emulated, not a GPU)\n"), text.out);
}

TEST_CASE("the benchmark of a GPU measures all that it has rows for [slow]") {
  CHECK(rows_of("") == std::set<std::string>{"gpu.copy", "gpu.add", "gpu.chain", "gpu.matmul.bf16",
                                             "gpu.matmul.f32", "gpu.upload", "gpu.download",
                                             "gpu.launch", "gpu.launch_and_wait", "gpu.step",
                                             "gpu.train.mlp", "gpu.train.lenet",
                                             "gpu.train.resnet20", "gpu.train.char_lstm"});
}

TEST_CASE("the benchmark of a GPU fails where the GPU does") {
  for (const char* row : {"gpu.launch", "gpu.step", "gpu.train.mlp"}) {
    INFO(row);
    Ended ended = bench(emulated(), std::string("--only ") + row, "launch_error_at=1");
    CHECK(ended.code != 0);
    CHECK_MESSAGE(contains(ended.err, "CUDA_ERROR_ILLEGAL_ADDRESS"), ended.err);
  }
}

TEST_CASE("without a GPU its benchmark ends with what doctor says") {
  Ended none = bench("/nowhere", "");
  CHECK(none.code == 1);
  CHECK_MESSAGE(contains(none.err, "no driver: libcuda.so.1 is not in /nowhere"), none.err);
  CHECK(none.out.empty());
  Ended no_device = bench(emulated(), "", "devices=0");
  CHECK(no_device.code == 1);
  CHECK_MESSAGE(contains(no_device.err, "no device: the fake "), no_device.err);
  Ended no_compiler = bench(build_dir() + "/fake-cuda", "");
  CHECK(no_compiler.code == 1);
  CHECK_MESSAGE(contains(no_compiler.err, "NVRTC is missing: libnvrtc.so.13"), no_compiler.err);
  CHECK(contains(no_compiler.err, "nvidia-cuda-nvrtc"));
}
