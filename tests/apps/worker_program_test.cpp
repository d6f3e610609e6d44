// Programs whose workers are the same program once more, as processes of their own.
#include <doctest/doctest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/apps/command.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"
#include "tests/environment_variable.hpp"

using namespace troupe::test;

TEST_CASE("a program becomes a worker where it makes its Session, without a word of its own") {
  Ended ended = shell_command(build_dir() + "/bin/forgetful --cluster local:2");
  CHECK_MESSAGE(ended.code == 0, ended.err);
  CHECK(contains(ended.out, "it has 42"));
  CHECK(!contains(ended.err, "it has"));  // as children's output would be
}

TEST_CASE("a program waits at its end for a session that closes on another thread") {
  for (const char* cluster : {"", " --cluster local:1"}) {
    Ended ended = shell_command(build_dir() + "/bin/parting" + cluster);
    CHECK_MESSAGE(ended.code == 0, ended.err);
    CHECK(contains(ended.out, "it has ended"));
  }
}

TEST_CASE("a master survives a worker that dies as the job starts") {
  for (int pause = 0; pause < 200; pause += 50) {
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

TEST_CASE("a worker takes the level of its master, which knows of fewer instructions") {
  const std::vector<std::string> train = {"train", "mnist-softmax", "--examples", "256", "--steps",
                                          "3",     "--quiet",       "--output",   "json"};
  int tried = 0;
  for (const std::string& level : words_of(TROUPE_TESTED_LEVELS)) {
    CAPTURE(level);
    std::unique_ptr<RunningCommand> alone, master;
    {
      const EnvironmentVariable isa("TROUPE_ISA", level);
      alone = std::make_unique<RunningCommand>(train);
      std::vector<std::string> with = train;
      with.insert(with.end(), {"--listen", "127.0.0.1:0", "--wait-for", "1", "--log", "info"});
      master = std::make_unique<RunningCommand>(with);
    }
    if (alone->end() != 0) {  // the processor lacks that level
      CHECK_MESSAGE(contains(alone->output(), "this processor"), alone->output());
      continue;
    }
    const std::string waiting = "waiting for workers at ";
    REQUIRE_MESSAGE(master->wait_for(waiting), master->output());
    REQUIRE(master->wait_for(" wanted"));
    const std::string said = master->output();
    const auto begin = said.find(waiting) + waiting.size();
    const std::string at = said.substr(begin, said.find(": ", begin) - begin);
    RunningCommand worker({"worker", "--master", at, "--quiet"});
    CHECK_MESSAGE(master->end() == 0, master->output());
    CHECK_MESSAGE(worker.end() == 0, worker.output());
    const auto hash = [](const std::string& output) {
      const auto from = output.find("params_sha256");
      return from == std::string::npos ? "none" : output.substr(from, 16 + 64);
    };
    CHECK(hash(alone->output()) != "none");
    CHECK(hash(master->output()) == hash(alone->output()));
    ++tried;
  }
  CHECK(tried > 0);
}
