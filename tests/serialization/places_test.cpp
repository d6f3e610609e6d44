// Where files are put that are written beside their place: never instead of a link, a device or a
// pipe.
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>

#include "serialization/checkpoint.hpp"
#include "serialization/safetensors.hpp"
#include "tests/serialization/device.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using troupe::testing::a_device;
using troupe::testing::TemporaryDir;
namespace fs = std::filesystem;

namespace {

Status write_text(const std::string& path, const std::string& text) {
  return write_file(disk(), path, [&](WritableFile& file) {
    return file.append(std::as_bytes(std::span(text)));
  });
}

}  // namespace

TEST_CASE("a file written to a link is written to where it leads") {
  const TemporaryDir dir;
  fs::create_directory(dir.path("there"));
  dir.write("there/file", "old");
  fs::create_symlink("there/file", dir.path("relative"));
  fs::create_symlink(dir.path("there/file"), dir.path("absolute"));
  fs::create_symlink("absolute", dir.path("second"));
  fs::create_symlink("there/new", dir.path("dangling"));
  for (const char* link : {"relative", "absolute", "second"}) {
    CAPTURE(link);
    REQUIRE(write_text(dir.path(link), link).ok());
    CHECK(fs::is_symlink(dir.path(link)));
    CHECK(dir.read("there/file") == link);
  }
  REQUIRE(write_text(dir.path("dangling"), "new").ok());
  CHECK(fs::is_symlink(dir.path("dangling")));
  CHECK(dir.read("there/new") == "new");
  // Nothing else is left, beside the links or where they lead.
  CHECK(dir.names() ==
        std::vector<std::string>{"absolute", "dangling", "relative", "second", "there"});
  CHECK(dir.names("there") == std::vector<std::string>{"file", "new"});
}

TEST_CASE("a file is not written instead of a device, a pipe, a socket or a directory") {
  const TemporaryDir dir;
  REQUIRE(::mkfifo(dir.path("pipe").c_str(), 0600) == 0);
  fs::create_directory(dir.path("directory"));
  const std::string device = a_device(dir);
  fs::create_symlink(device, dir.path("link"));
  fs::create_symlink("loop", dir.path("loop"));
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, dir.path("socket").c_str(), sizeof address.sun_path - 1);
  REQUIRE(::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  const auto before = dir.names();
  const std::pair<std::string, const char*> wrong[] = {
      {device, "is a device"},
      {dir.path("link"), "is a device"},
      {dir.path("pipe"), "is a pipe"},
      {dir.path("socket"), "is a socket"},
      {dir.path("directory"), "is a directory"},
      {dir.path("loop"), "cannot follow"},
  };
  for (const auto& [path, says] : wrong) {
    const Status status = write_text(path, "text");
    CHECK(status.code() == Code::failed_precondition);
    CHECK_MESSAGE(status.message().find(says) != std::string::npos, status.message());
    CHECK(status.message().find("'" + path + "'") != std::string::npos);
    const Safetensors content{{{"x", Tensor::scalar(1.f)}}, {}};
    CHECK(write_safetensors(path, content).code() == Code::failed_precondition);
  }
  ::close(fd);
  CHECK(dir.names() == before);
  CHECK(fs::is_fifo(dir.path("pipe")));
  CHECK(fs::is_character_file(device));
}

TEST_CASE("checkpoints take the place of checkpoints alone, and remove no more than a link") {
  const TemporaryDir dir;
  fs::create_directory(dir.path("elsewhere"));
  dir.write("elsewhere/keep", "precious");
  fs::create_directory(dir.path("c"));
  const CheckpointData at_one{{.step = 1, .commit = 1}, {{"x", Tensor::scalar(1.f)}}};
  const auto made = write_checkpoint(dir.path("c"), at_one);
  REQUIRE(made.ok());
  const std::string name = fs::path(made->path).filename();
  SUBCASE("in the place of a link") {
    fs::remove_all(made->path);
    fs::create_directory_symlink(dir.path("elsewhere"), made->path);
    REQUIRE(write_checkpoint(dir.path("c"), at_one).ok());
    CHECK(verify_checkpoint(made->path).ok());
  }
  SUBCASE("a link that is old enough to go") {
    fs::remove_all(made->path);
    fs::create_directory_symlink(dir.path("elsewhere"), made->path);
    CheckpointData at_two = at_one;
    at_two.step = 2;
    REQUIRE(write_checkpoint(dir.path("c"), at_two, {.keep = 1}).ok());
    CHECK(dir.names("c").size() == 1);
  }
  SUBCASE("in the place of a file") {
    fs::remove_all(made->path);
    dir.write("c/" + name, "a file");
    const Status status = write_checkpoint(dir.path("c"), at_one).status();
    CHECK(status.code() == Code::failed_precondition);
    CHECK(dir.read("c/" + name) == "a file");
  }
  CHECK(dir.read("elsewhere/keep") == "precious");
}
