// What `troupe doctor` says of machines that have more or less of CUDA.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "tests/apps/command.hpp"

namespace {

// On a machine that has what is in these folders, and nothing else.
Ended doctor(const std::string& folders, const std::string& fake = {},
             const std::string& arguments = {}) {
  return shell_command("TROUPE_CUDA_PATH=" + folders + ":- TROUPE_FAKE_CUDA=" + fake + " " +
                       troupe_program() + " doctor " + arguments);
}

std::string fake_folder() { return build_dir() + "/fake-cuda"; }

// The line of one part.
std::string line_of(const Ended& ended, const std::string& part) {
  std::istringstream lines(ended.out);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(part + " ")) return line.substr(10);
  return {};
}

}  // namespace

TEST_CASE("doctor tells in one line why there is no GPU to use") {
  Ended none = doctor("/nowhere");
  CHECK(none.code == 0);
  CHECK(line_of(none, "driver") == "no driver: libcuda.so.1 is not in /nowhere");
  CHECK(contains(line_of(doctor(fake_folder(), "stub=1"), "driver"), " is a stub"));
  CHECK(contains(line_of(doctor(fake_folder(), "version=11080"), "driver"), "too old: "));
  CHECK(contains(line_of(doctor(fake_folder(), "devices=0"), "driver"), "no device: the fake "));
  Ended fake = doctor(fake_folder(), "devices=2,memory_mb=512");
  CHECK(line_of(fake, "driver") ==
        "the fake driver of CUDA 13.0 (" + fake_folder() + "/libcuda.so.1)");
  CHECK(line_of(fake, "gpu:0") == "Fake GPU, 512 MiB, sm_90");
  CHECK(line_of(fake, "gpu:1") == line_of(fake, "gpu:0"));
  CHECK(line_of(fake, "gpu:2").empty());
  CHECK(contains(line_of(fake, "cpu"), " processors, kernels for x86-64-v"));
  CHECK(fake.err.empty());
}

TEST_CASE("doctor names the wheel that has a missing library") {
  Ended fake = doctor(fake_folder());
  CHECK(line_of(fake, "nvrtc") == "missing: libnvrtc.so.13 is not in " + fake_folder() +
                                      "; the wheel nvidia-cuda-nvrtc has it");
  CHECK(contains(line_of(fake, "cublasLt"), "; the wheel nvidia-cublas has it"));
  CHECK(contains(line_of(fake, "cudnn"), "; the wheel nvidia-cudnn-cu13 has it"));
  Ended older = doctor(fake_folder(), "version=12040");
  CHECK(contains(line_of(older, "nvrtc"), "; the wheel nvidia-cuda-nvrtc-cu12 has it"));
  CHECK(contains(line_of(older, "cudnn"), "; the wheel nvidia-cudnn-cu12 has it"));
}

TEST_CASE("doctor tells what computes products of matrices") {
  CHECK(contains(line_of(doctor(fake_folder()), "matmul"),
                 "by Troupe's kernels: cublasLt is missing: "));
  const std::string both = fake_folder() + ":" + build_dir() + "/fake-cublaslt";
  CHECK(contains(line_of(doctor(both), "matmul"), "by cublasLt ("));
  setenv("TROUPE_CUDA_MATMUL", "kernels", 1);
  CHECK(line_of(doctor(both), "matmul") == "by Troupe's kernels: TROUPE_CUDA_MATMUL=kernels");
  setenv("TROUPE_CUDA_MATMUL", "other", 1);
  CHECK(contains(line_of(doctor(both), "matmul"), "TROUPE_CUDA_MATMUL is 'other'"));
  unsetenv("TROUPE_CUDA_MATMUL");
  CHECK(line_of(doctor("/nowhere"), "matmul").empty());  // there is no driver
}

TEST_CASE("doctor tells what computes convolutions") {
  CHECK(
      contains(line_of(doctor(fake_folder()), "conv"), "by Troupe's kernels: cudnn is missing: "));
  const std::string both = fake_folder() + ":" + build_dir() + "/fake-cudnn";
  CHECK(contains(line_of(doctor(both), "conv"), "by cudnn ("));
  CHECK(contains(line_of(doctor(both), "cudnn"), "9.19.0 ("));
  CHECK(line_of(doctor(both, "version=12040"), "conv") ==
        "by Troupe's kernels: " + build_dir() +
            "/fake-cudnn/libcudnn.so.9 is too new for the driver of CUDA 12.4");
  setenv("TROUPE_CUDA_CONV", "kernels", 1);
  CHECK(line_of(doctor(both), "conv") == "by Troupe's kernels: TROUPE_CUDA_CONV=kernels");
  setenv("TROUPE_CUDA_CONV", "other", 1);
  CHECK(contains(line_of(doctor(both), "conv"), "TROUPE_CUDA_CONV is 'other'"));
  unsetenv("TROUPE_CUDA_CONV");
  CHECK(line_of(doctor("/nowhere"), "conv").empty());  // there is no driver
}

TEST_CASE("doctor tells what computes attention") {
  CHECK(contains(line_of(doctor(fake_folder()), "attention"),
                 "by Troupe's kernels: cudnn is missing: "));
  const std::string both = fake_folder() + ":" + build_dir() + "/fake-cudnn";
  CHECK(contains(line_of(doctor(both), "attention"), "by cudnn ("));
  setenv("TROUPE_CUDA_ATTENTION", "kernels", 1);
  CHECK(line_of(doctor(both), "attention") == "by Troupe's kernels: TROUPE_CUDA_ATTENTION=kernels");
  setenv("TROUPE_CUDA_ATTENTION", "other", 1);
  CHECK(contains(line_of(doctor(both), "attention"), "TROUPE_CUDA_ATTENTION is 'other'"));
  unsetenv("TROUPE_CUDA_ATTENTION");
  CHECK(line_of(doctor("/nowhere"), "attention").empty());  // there is no driver
}

TEST_CASE("doctor finds libraries where wheels put them, and sees what is wrong with them") {
  char folder[] = "/tmp/troupe-doctor-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string lib = std::string(folder) + "/nvidia/cu13/lib";
  std::filesystem::create_directories(lib);
  std::ofstream(lib + "/libnvrtc.so.13") << "no library";
  std::filesystem::create_symlink(build_dir() + "/lib/libtroupe_simt.so",
                                  lib + "/libcublasLt.so.13");
  std::filesystem::create_symlink(build_dir() + "/fake-cublaslt/libcublasLt.so.13",
                                  lib + "/libcudnn.so.9");
  Ended ended = doctor(folder);
  CHECK(contains(line_of(ended, "nvrtc"), lib + "/libnvrtc.so.13 cannot be loaded: "));
  CHECK(contains(line_of(ended, "cublasLt"), " lacks cublasLtGetVersion"));
  CHECK(contains(line_of(ended, "cudnn"), " lacks cudnnGetVersion"));
  std::filesystem::remove_all(folder);
}

TEST_CASE("doctor takes the libraries that the driver can use, wherever they are") {
  char made[] = "/tmp/troupe-doctor-XXXXXX";
  REQUIRE(mkdtemp(made) != nullptr);
  const std::string folder = made, newer = folder + "/newer", older = folder + "/older/lib64";
  namespace fs = std::filesystem;
  fs::create_directories(newer);
  fs::create_directories(older);
  const auto put = [](const std::string& name, const std::string& from, const std::string& to) {
    fs::copy_file(build_dir() + "/fake-" + from + "/lib" + name + ".so.13", to);
  };
  put("nvrtc", "nvrtc", newer + "/libnvrtc.so.13");
  put("cublasLt", "cublaslt", newer + "/libcublasLt.so.13");
  const std::string both = fake_folder() + ":" + newer + ":" + folder + "/older";
  const std::string of_12 = "version=12040", of_13 = "version=13000";
  // A driver of CUDA 12, and libraries of 13 alone: they are told too new.
  Ended alone = doctor(both, of_12);
  CHECK(contains(line_of(alone, "nvrtc"), "13.0 (" + newer +
                                              "/libnvrtc.so.13) makes code that "
                                              "the driver of CUDA 12.4 does not load; the wheel "
                                              "nvidia-cuda-nvrtc-cu12"));
  CHECK(contains(line_of(alone, "cublasLt"),
                 " is too new for the driver of CUDA 12.4; the wheel nvidia-cublas-cu12"));
  CHECK(contains(line_of(alone, "matmul"), "by Troupe's kernels: "));
  // With those of 12 further down the path as well.
  put("nvrtc", "nvrtc", older + "/libnvrtc.so.12");
  put("cublasLt", "cublaslt", older + "/libcublasLt.so.12");
  Ended chosen = doctor(both, of_12);
  CHECK(line_of(chosen, "nvrtc") == "12.8 (" + older + "/libnvrtc.so.12)");
  CHECK(line_of(chosen, "cublasLt") == "12.8.0 (" + older + "/libcublasLt.so.12)");
  CHECK(line_of(chosen, "matmul") == "by cublasLt (" + older + "/libcublasLt.so.12)");
  // A driver of CUDA 13 takes the newer ones, and the older ones where there are no others.
  Ended latest = doctor(both, of_13);
  CHECK(line_of(latest, "nvrtc") == "13.0 (" + newer + "/libnvrtc.so.13)");
  CHECK(contains(line_of(latest, "matmul"), newer + "/libcublasLt.so.13"));
  fs::remove_all(newer);
  CHECK(line_of(doctor(both, of_13), "nvrtc") == "12.8 (" + older + "/libnvrtc.so.12)");
  fs::remove_all(folder);
}

TEST_CASE("what doctor says is a JSON document as well") {
  auto none = doctor("/nowhere", "", "--output json").json();
  CHECK(none["cpu"]["processors"] >= 1);
  CHECK(none["cuda"]["ready"] == false);
  CHECK(none["cuda"]["fake"] == false);
  CHECK(none["cuda"]["parts"][0]["part"] == "driver");
  CHECK(none["cuda"]["parts"][0]["state"] == "missing");
  auto state = [](const std::string& fake) {
    return doctor(fake_folder(), fake, "--output json").json()["cuda"]["parts"][0]["state"];
  };
  CHECK(state("stub=1") == "stub");
  CHECK(state("version=11080") == "old");
  CHECK(state("devices=0") == "no_device");
  CHECK(state("") == "ready");
  auto fake = doctor(fake_folder(), "", "--output json").json()["cuda"];
  CHECK(fake["fake"] == true);
  CHECK(fake["ready"] == false);
  CHECK(fake["parts"][2]["wheel"] == "nvidia-cuda-nvrtc");
}

TEST_CASE("training on a GPU that is not there ends with what doctor says") {
  const auto train = [](const std::string& folders, const std::string& fake,
                        const std::string& device) {
    return shell_command("TROUPE_CUDA_PATH=" + folders + ":- TROUPE_FAKE_CUDA=" + fake + " " +
                         troupe_program() + " train mnist-mlp --device " + device);
  };
  for (const auto& [folders, fake] :
       std::vector<std::pair<std::string, std::string>>{{"/nowhere", ""},
                                                        {fake_folder(), "stub=1"},
                                                        {fake_folder(), "version=11080"},
                                                        {fake_folder(), "devices=0"}}) {
    const std::string said = line_of(doctor(folders, fake), "driver");
    for (const char* device : {"cuda", "GPU", "cpu --device cuda"}) {
      Ended ended = train(folders, fake, device);
      CHECK(ended.code == 1);
      CHECK_MESSAGE(contains(ended.err, said), ended.err);
    }
  }
}

TEST_CASE("the program is linked against no library of CUDA") {
  Ended ldd = shell_command("ldd " + troupe_program());
  CHECK(ldd.code == 0);
  CHECK(contains(ldd.out, "libtroupe_devices.so"));
  for (const char* library : {"cuda", "nvrtc", "cublas", "cudnn", "nccl"})
    CHECK_FALSE_MESSAGE(contains(ldd.out, library), ldd.out);
}
