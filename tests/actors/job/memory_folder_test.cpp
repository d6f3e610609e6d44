#include "actors/job/memory_folder.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/contains.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
namespace fs = std::filesystem;

namespace {

bool there(const std::string& path) { return fs::exists(path); }

}  // namespace

TEST_CASE("a folder in memory is there as long as its owner, and lets nobody else in") {
  std::string path;
  {
    const auto folder = value_or_throw(MemoryFolder::make());
    path = folder->path();
    std::ofstream(path + "/part") << "bytes";
    struct stat info {};
    REQUIRE(stat(path.c_str(), &info) == 0);
    CHECK((info.st_mode & 07777) == 0700);
    const auto other = value_or_throw(MemoryFolder::make());  // leaves the first one alone
    CHECK(other->path() != path);
    CHECK(there(path + "/part"));
  }
  CHECK_FALSE(there(path));
}

TEST_CASE("what a killed owner leaves in memory is removed by the next one") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto folder = MemoryFolder::make();
    const std::string path = folder.ok() ? (*folder)->path() : "";
    (void)!mkdir((path + "/ckpt-1").c_str(), 0700);
    (void)!write(ends[1], path.data(), path.size());
    _exit(0);  // without destructors, as when it is killed
  }
  close(ends[1]);
  char name[256];
  const ssize_t n = read(ends[0], name, sizeof name);
  close(ends[0]);
  REQUIRE(waitpid(child, nullptr, 0) == child);
  REQUIRE(n > 0);
  const std::string left(name, std::size_t(n));
  CHECK(there(left + "/ckpt-1"));
  const auto folder = value_or_throw(MemoryFolder::make());
  CHECK_FALSE(there(left));
  CHECK(there(folder->path()));
}

TEST_CASE("a folder whose files are on a disk is no memory") {
  const testing::TemporaryDir dir;
  const auto folder = MemoryFolder::make(dir.path() + "/missing");
  CHECK(folder.status().code() == Code::failed_precondition);
  CHECK(test::contains(folder.status().text(), dir.path()));
}
