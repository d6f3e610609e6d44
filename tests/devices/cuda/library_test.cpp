#include "devices/cuda/library.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "devices/cuda/nvrtc.hpp"
#include "tests/contains.hpp"
#include "tests/paths.hpp"

using namespace troupe;
using troupe::test::contains;
namespace fs = std::filesystem;

namespace {

struct Folder {
  Folder() {
    char name[] = "/tmp/troupe-cuda-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() { fs::remove_all(path); }
  std::string path;
};

}  // namespace

TEST_CASE("CUDA: folders are searched in their order, and none behind a dash") {
  using List = std::vector<std::string>;
  CHECK(cuda::Search::of("", "/t/build").folders == List{"/t/build/cuda", "/usr/local/cuda"});
  CHECK(cuda::Search::of("/a:/b", "/t").folders == List{"/a", "/b", "/t/cuda", "/usr/local/cuda"});
  CHECK(cuda::Search::of("/a", "").folders == List{"/a", "/usr/local/cuda"});
  CHECK(cuda::Search::of("::/a:", "").folders == List{"/a", "/usr/local/cuda"});
  CHECK(cuda::Search::of("/a", "").loader);
  CHECK(cuda::Search::of("/a:-:/b", "/t").folders == List{"/a"});
  CHECK_FALSE(cuda::Search::of("-", "/t").loader);
}

TEST_CASE("CUDA: a library that is nowhere is told with the places where it was looked for") {
  Status status = cuda::Library::open({"libnowhere.so.1"}, {{"/a", "/b"}, true}).status();
  CHECK(status.code() == Code::not_found);
  CHECK(status.message() == "libnowhere.so.1 is not in /a, /b, or the loader's paths");
  CHECK(cuda::Library::open({"libnowhere.so.1"}, {{}, true}).status().message() ==
        "libnowhere.so.1 is not where the loader looks");
  CHECK(cuda::Library::open({"libnowhere.so.1"}, {{"/a"}, false}).status().message() ==
        "libnowhere.so.1 is not in /a");
  CHECK(cuda::Library::open({"libnowhere.so.1"}, {{}, false}).status().message() ==
        "libnowhere.so.1 is not searched for anywhere");
}

TEST_CASE("CUDA: a file that cannot be loaded is told, and not passed over for another") {
  Folder folder;
  fs::create_directories(folder.path + "/lib64");
  std::ofstream(folder.path + "/lib64/libm.so.6") << "no library";
  Status status = cuda::Library::open({"libm.so.6"}, {{"/nowhere", folder.path}, true}).status();
  CHECK(status.code() == Code::failed_precondition);
  CHECK(contains(status.message(), folder.path + "/lib64/libm.so.6 cannot be loaded: "));
  auto found = cuda::Library::open({"libnowhere.so.1", "libm.so.6"}, {{"/nowhere"}, true});
  REQUIRE(found.ok());
  CHECK(contains(found->path(), "/libm.so.6"));
  CHECK(found->find("cos") != nullptr);
  CHECK(found->find("no such function") == nullptr);
}

TEST_CASE("CUDA: the library that NVRTC asks the loader for is opened beside it") {
  const cuda::Search search{{build_dir() + "/fake-nvrtc"}, false};
  REQUIRE(cuda::open_nvrtc(search, 0).ok());
  CHECK(dlopen("libtroupe_fake_builtins.so", RTLD_NOW | RTLD_NOLOAD) != nullptr);
}

TEST_CASE("CUDA: NVRTC compiles a kernel, and says what is wrong with another") {
  const auto nvrtc = cuda::open_nvrtc(cuda::Search::standard(), 0);
  if (!nvrtc.ok()) {
    CHECK(nvrtc.status().code() == Code::not_found);
    MESSAGE("skipped: ", nvrtc.status().message(), " (wheel nvidia-cuda-nvrtc)");
    return;
  }
  const std::string source =
      "template <class T> __global__ void add(T* y, const T* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) y[i] += x[i];\n"
      "}\n";
  auto made = nvrtc->compile(source, {"add<float>", "add<double>"}, "sm_90");
  REQUIRE_MESSAGE(made.ok(), made.status().text());
  CHECK(made->names == std::vector<std::string>{"_Z3addIfEvPT_PKS0_i", "_Z3addIdEvPT_PKS0_i"});
  CHECK(made->image.substr(0, 4) ==
        "\x7f"
        "ELF");
  Status wrong = nvrtc->compile("__global__ void f() { no_such(); }", {"f"}, "sm_90").status();
  CHECK(wrong.code() == Code::invalid_argument);
  CHECK(contains(wrong.message(), "no_such"));
  CHECK_FALSE(nvrtc->compile(source, {"add<float>"}, "sm_1").ok());
}
