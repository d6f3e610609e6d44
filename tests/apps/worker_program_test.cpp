// Programs whose workers are the same program once more, as processes of their own.
#include <doctest/doctest.h>

#include <set>

#include "tests/apps/command.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"

using namespace troupe::test;

TEST_CASE("a program becomes a worker where it makes its Session, without a word of its own") {
  Ended ended = shell_command(build_dir() + "/bin/forgetful --cluster local:2");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "it has 42"));
  CHECK(!contains(ended.err, "it has"));  // as children's output would be
}

TEST_CASE("a master survives a worker that dies as the job starts") {
  for (int pause = 0; pause < 200; pause += 33) {
    CAPTURE(pause);
    RunningCommand train({"train", "mnist-softmax", "--cluster", "local:2", "--replicas", "2",
                          "--examples", "256", "--steps", "3", "--quiet"});
    std::set<pid_t> workers;
    auto until = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (workers.size() < 2 && std::chrono::steady_clock::now() < until)
      for (pid_t worker : processes_of(train.pid())) workers.insert(worker);
    REQUIRE(!workers.empty());
    poll(nullptr, 0, pause);  // any moment will do
    kill(*workers.begin(), SIGKILL);
    int code = train.end(std::chrono::seconds(60));
    CHECK_MESSAGE((code == 0 || code == 75), code, train.output());
    if (code == 75) CHECK_MESSAGE(contains(train.output(), "worker"), train.output());
  }
}
