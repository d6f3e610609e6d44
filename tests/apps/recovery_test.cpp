// Workers die, and the program that started them goes on, to the same bits.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"

namespace fs = std::filesystem;
using namespace troupe::test;

namespace {

std::string newest(const std::string& dir) {
  std::string name;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(dir, none))
    if (entry.path().filename().string().starts_with("ckpt-") &&
        entry.path().filename().string().size() >= name.size())
      name = std::max(name, entry.path().filename().string());
  return name;
}

}  // namespace

TEST_CASE("a trainer whose workers are killed and stopped goes on, to the same bits") {
  const std::string train =
      "train mnist-softmax --examples 512 --steps 500 --threads 1 --replicas 2 --cluster local:2 "
      "--output json";
  const auto whole = troupe_command(train).json();
  REQUIRE(whole.is_object());
  Folder folder;
  RunningCommand run(words_of(train + " --checkpoint-every 20 --checkpoint-dir " + folder.path));
  std::set<pid_t> before;
  int signals[] = {SIGKILL, SIGSTOP};
  for (std::size_t k = 0; k < std::size(signals); ++k) {
    // Two workers that are new, and a step that they made.
    const std::string was = newest(folder.path);
    REQUIRE(wait_until([&] {
      const auto now = processes_of(run.pid());
      return now.size() == 2 && !before.contains(now[0]) && !before.contains(now[1]) &&
             newest(folder.path) != was;
    }));
    const auto workers = processes_of(run.pid());
    before = {workers.begin(), workers.end()};
    kill(workers[k % 2], signals[k]);
  }
  REQUIRE_MESSAGE(run.end() == 0, run.output());
  CHECK_MESSAGE(contains(run.output(), whole["params_sha256"].get<std::string>()), run.output());
  CHECK(contains(run.output(), "going on from commit"));
}
