// `troupe run`: a program that is killed at any moment lives again, and its job ends with the bits
// of one that nobody disturbed.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/running_command.hpp"

namespace fs = std::filesystem;

namespace {

// The processes that `pid` has started, and those that they have.
std::vector<pid_t> below(pid_t pid) {
  std::vector<pid_t> all;
  for (const auto& task : fs::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::ifstream children(task.path() / "children");
    for (pid_t child = 0; children >> child;) {
      all.push_back(child);
      for (pid_t each : below(child)) all.push_back(each);
    }
  }
  return all;
}

std::size_t lives(const std::string& job) {
  std::ifstream log(job + "/lives.log");
  std::size_t n = 0;
  for (std::string line; std::getline(log, line);) n += contains(line, "\"started\"");
  return n;
}

bool wait_until(const std::function<bool()>& there) {
  for (int i = 0; i < 6000; ++i) {
    if (there()) return true;
    std::this_thread::yield();
    usleep(5000);
  }
  return false;
}

bool has_checkpoint(const std::string& job, const std::string& other_than = {}) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(job + "/checkpoints", none))
    if (entry.path().filename().string().starts_with("ckpt-") && entry.path() != other_than)
      return true;
  return false;
}

}  // namespace

TEST_CASE("a job whose processes are killed goes on under troupe run, to the same bits") {
  const std::string train =
      " train mnist-softmax --examples 512 --steps 3000 --threads 1 "
      "--replicas 2 --cluster local:2 --output json";
  const auto whole = troupe_command(train).json();
  REQUIRE(whole.is_object());
  Folder folder;
  const std::string job = folder.path + "/job";
  std::istringstream words("run --job " + job + " -- " + troupe_program() + train +
                           " --checkpoint-every 20");
  std::vector<std::string> arguments;
  for (std::string word; words >> word;) arguments.push_back(word);
  RunningCommand run(arguments);
  // The trainer, then one of its workers.
  for (std::size_t kill_worker : {0, 1}) {
    REQUIRE(wait_until([&] {
      return lives(job) == kill_worker + 1 && below(run.pid()).size() == 3 && has_checkpoint(job);
    }));
    const auto processes = below(run.pid());
    kill(processes[kill_worker], SIGKILL);
    REQUIRE(wait_until([&] { return lives(job) == kill_worker + 2; }));
  }
  const auto second = std::string("a second one");
  const Ended refused = troupe_command("run --job " + job + " -- true");
  CHECK(refused.code == 1);
  CHECK(contains(refused.err, "is running already"));
  REQUIRE_MESSAGE(run.end() == 0, run.output());
  const std::string& out = run.output();
  CHECK(contains(out, "was ended by signal 9 (Killed) at step"));
  CHECK(contains(out, "ended with exit code 75 at step"));
  CHECK_MESSAGE(contains(out, whole["params_sha256"].get<std::string>()), out);
  CHECK(fs::status(job).permissions() == fs::perms::owner_all);
}

TEST_CASE("what a program says by its exit code is the supervisor's, and ends the job") {
  Folder folder;
  const std::string run = "run --job " + folder.path + "/job --max-restarts 2 ";
  for (int code : {0, 1, 2, 143}) {
    const Ended ended = troupe_command(run + "-- sh -c 'exit " + std::to_string(code) + "'");
    CHECK(ended.code == code);
    CHECK(contains(ended.err, "exit code") == (code != 0));
  }
  CHECK(lives(folder.path + "/job") == 4);
  const Ended again = troupe_command(run + "-- sh -c 'echo life; exit 75'");
  CHECK(again.code == 75);
  CHECK(again.out == "life\nlife\nlife\n");
  CHECK(contains(again.err, "exit code 75, 3 times within 60 s"));
  const Ended killed = troupe_command(run + "--quiet -- sh -c 'kill -SEGV $$'");
  CHECK(killed.code == 139);
  CHECK(killed.err.empty());
  const Ended missing = troupe_command(run + "-- no-such-program");
  CHECK(missing.code == 127);
  CHECK(contains(missing.err, "cannot run 'no-such-program': No such file"));
  std::ofstream(folder.path + "/file") << "x";
  CHECK(troupe_command("run --job " + folder.path + "/file -- true").code == 1);
  CHECK(troupe_command("run").code == 2);
}

TEST_CASE("a signal to the supervisor ends its program, and what that leaves behind") {
  for (int signal : {SIGTERM, SIGINT}) {
    Folder folder;
    const std::string job = folder.path + "/job";
    RunningCommand run({"run", "--job", job, "--", troupe_program(), "train", "mnist-softmax",
                        "--examples", "512", "--steps", "1000000", "--threads", "1", "--cluster",
                        "local:1", "--checkpoint-every", "20"});
    REQUIRE(wait_until([&] { return has_checkpoint(job) && below(run.pid()).size() == 2; }));
    run.signal(signal);
    CHECK(run.end() == 128 + signal);
    CHECK(lives(job) == 1);
  }
}

TEST_CASE("an Error that leaves main ends the program by its code") {
  const std::string mnist = build_dir() + "/bin/examples/mnist ";
  const Ended wrong = shell_command(mnist + "--threads x");
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.err, "--threads wants a number from 0 to 1024, not 'x'"));
  CHECK_FALSE(contains(wrong.err, "terminate called"));
}
