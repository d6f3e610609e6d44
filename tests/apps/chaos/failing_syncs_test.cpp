#include "apps/chaos/failing_syncs.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "tests/apps/folder.hpp"

using namespace troupe;

namespace {

int code_of(pid_t process) {
  int status = 0;
  waitpid(process, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("fsync fails for the process that is to fail, and for no other one") {
  const Folder folder;
  REQUIRE(mkfifo((folder.path + "/go").c_str(), 0600) == 0);
  for (const bool failing : {false, true}) {
    auto syncs = value_or_throw(FailingSyncs::start(
        {"sh", "-c",
         "cd $0; echo text > file; sync file || exit 9; read word < go; exec sync file 2> said",
         folder.path}));
    if (failing) syncs->fail(syncs->pid());  // the first sync is a child's
    std::ofstream(folder.path + "/go") << "go\n";
    CHECK(code_of(syncs->pid()) == (failing ? 1 : 0));
    CHECK(syncs->failed() == (failing ? 1 : 0));
  }
  std::string said;
  std::getline(std::ifstream(folder.path + "/said"), said);
  CHECK_MESSAGE(said.find("Input/output error") != said.npos, said);
}

TEST_CASE("fsync fails for all processes below, and not for the one above them") {
  const Folder folder;
  REQUIRE(mkfifo((folder.path + "/go").c_str(), 0600) == 0);
  auto syncs = value_or_throw(FailingSyncs::start(
      {"sh", "-c",
       "cd $0; echo text > file; read word < go; sync file 2> said && exit 9; exec sync file",
       folder.path}));
  syncs->fail(FailingSyncs::kBelow);
  std::ofstream(folder.path + "/go") << "go\n";
  CHECK(code_of(syncs->pid()) == 0);
  CHECK(syncs->failed() == 1);
}

TEST_CASE("a process with failing syncs that cannot be started says why") {
  const auto none = FailingSyncs::start({"/no/such/program"});
  CHECK(none.status().code() == Code::not_found);
}
