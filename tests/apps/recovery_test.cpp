// Workers die, and the program that started them goes on, to the same bits.
#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <set>

#include "tests/actors/support/tcp_workers.hpp"
#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"
#include "tests/environment_variable.hpp"

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

// A job and its workers that know each other by address and secret alone, as on several machines.
struct Apart {
  Folder folder;
  ReservedPort port;
  std::string checkpoints = folder.path + "/made", secret = folder.path + "/secret";
  std::string at = "127.0.0.1:" + std::to_string(port.number());
  // Words of the job, and the command of a worker.
  std::string master = " --listen " + at + " --secret-file " + secret +
                       " --checkpoint-every 20 --checkpoint-dir " + checkpoints;
  std::string worker = "worker --master " + at + " --secret-file " + secret;

  Apart() {
    std::ofstream(secret) << "sixteen bytes at least";
    fs::permissions(secret, fs::perms::owner_read);
  }
};

}  // namespace

TEST_CASE("a trainer whose workers are killed and stopped goes on, to the same bits") {
  const std::string train =
      "train mnist-softmax --examples 512 --steps 500 --threads 1 --replicas 2 --output json";
  const auto whole = troupe_command(train).json();
  REQUIRE(whole.is_object());
  Folder folder;
  RunningCommand run(
      words_of(train + " --cluster local:2 --checkpoint-every 20 --checkpoint-dir " + folder.path));
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

TEST_CASE(
    "a spare takes the place of a worker of another machine, in the same life, to the same bits") {
  const std::string train =
      "train mnist-softmax --examples 512 --steps 300 --threads 1 --replicas 2 --output json";
  const auto whole = troupe_command(train).json();
  REQUIRE(whole.is_object());
  const Apart apart;
  RunningCommand run(words_of(train + apart.master + " --wait-for 2 --spares 1"));
  RunningCommand lost(words_of(apart.worker)), stays(words_of(apart.worker));
  REQUIRE(wait_until([&] { return !newest(apart.checkpoints).empty(); }));
  RunningCommand spare(words_of(apart.worker));
  kill(lost.pid(), SIGKILL);
  REQUIRE_MESSAGE(run.end() == 0, run.output());
  CHECK_MESSAGE(contains(run.output(), whole["params_sha256"].get<std::string>()), run.output());
  CHECK(contains(run.output(), "going on from commit"));
  CHECK_MESSAGE(stays.end() == 0, stays.output());
  CHECK_MESSAGE(spare.end() == 0, spare.output());
}

TEST_CASE("a signal ends a job that waits for a worker in the place of a lost one") {
  const Apart apart;
  RunningCommand run(
      words_of("train mnist-softmax --examples 512 --steps 1000000 --threads 1 --log info" +
               apart.master + " --wait-for 1 --replace-within 600"));
  RunningCommand lost(words_of(apart.worker));
  REQUIRE(wait_until([&] { return !newest(apart.checkpoints).empty(); }));
  run.forget();
  kill(lost.pid(), SIGKILL);
  REQUIRE_MESSAGE(run.wait_for("waiting for workers"), run.output());
  run.signal(SIGTERM);
  CHECK_MESSAGE(run.end() == 128 + SIGTERM, run.output());
}

TEST_CASE("the tasks of a launcher that are all asked to end leave a last checkpoint") {
  const Apart apart;
  const std::string job = apart.folder.path + "/job";
  const EnvironmentVariable tasks("SLURM_NTASKS", "2");
  const auto task = [&](const std::string& number) {
    const EnvironmentVariable rank("SLURM_PROCID", number);
    return std::make_unique<RunningCommand>(words_of(
        "run --quiet --job " + job + number + " -- " + build_dir() +
        "/bin/subject rests --threads 1 --quiet --cluster slurm --listen " + apart.at +
        " --secret-file " + apart.secret + " --job-dir " + job + " --checkpoint-every 1000000000"));
  };
  const auto master = task("0"), worker = task("1");
  REQUIRE(wait_until([&] {
    const auto now = troupe_command("status " + job + "0 --output json").json();
    return now.is_object() && now.value("step", 0) > 0;
  }));
  CHECK(newest(job).empty());
  worker->signal(SIGTERM);
  master->signal(SIGTERM);
  CHECK_MESSAGE(master->end() == 128 + SIGTERM, master->output());
  CHECK_MESSAGE(worker->end() == 0, worker->output());
  CHECK_FALSE(newest(job).empty());
}

TEST_CASE("a worker of a launcher that was asked to end waits for no other master") {
  const Apart apart;
  const EnvironmentVariable tasks("SLURM_NTASKS", "2");
  const auto task = [&](const char* number) {
    const EnvironmentVariable rank("SLURM_PROCID", number);
    return std::make_unique<RunningCommand>(
        words_of("train mnist-softmax --examples 512 --steps 1000000 --threads 1 --quiet --cluster "
                 "slurm --orphan-timeout 600" +
                 apart.master));
  };
  const auto master = task("0"), worker = task("1");
  REQUIRE(wait_until([&] { return !newest(apart.checkpoints).empty(); }));
  worker->signal(SIGTERM);  // as to all of a job that is cancelled
  master->signal(SIGKILL);
  CHECK_MESSAGE(worker->end(std::chrono::seconds(60)) == 128 + SIGTERM, worker->output());
}

TEST_CASE("a job of other machines whose lost worker nobody replaces ends with 75 [slow]") {
  const Apart apart;
  RunningCommand run(
      words_of("train mnist-softmax --examples 512 --steps 1000000 --threads 1 "
               "--quiet" +
               apart.master + " --wait-for 1 --replace-within 1"));
  RunningCommand lost(words_of(apart.worker));
  REQUIRE(wait_until([&] { return !newest(apart.checkpoints).empty(); }));
  kill(lost.pid(), SIGKILL);
  CHECK_MESSAGE(run.end() == 75, run.output());
  CHECK_MESSAGE(contains(run.output(), "0 of 1 workers joined within 1 s"), run.output());
}

TEST_CASE("a large state comes back from the memory of the machine, without a disk [slow]") {
  Folder folder;
  const std::string state = build_dir() + "/bin/state";
  const std::string what = " checkpoints 80 150 --threads 1 --cluster local:2 --replicas 2 ";
  const Ended whole = shell_command(state + what);
  REQUIRE_MESSAGE(whole.code == 0, whole.err);
  RunningCommand run(words_of("run --job " + folder.path + "/job -- " + state + what +
                              "--checkpoint-memory 1s --checkpoint-every 1000000"));
  const auto program = [&] { return processes_of(run.pid()); };
  REQUIRE(wait_until([&] {
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      if (entry.path().filename().string().starts_with("troupe-" + std::to_string(getuid())) &&
          !newest(entry.path()).empty())
        return program().size() == 1 && processes_of(program()[0]).size() == 2;
    return false;
  }));
  kill(processes_of(program()[0])[1], SIGKILL);
  REQUIRE_MESSAGE(run.end() == 0, run.output());
  CHECK_MESSAGE(contains(run.output(), "going on from commit"), run.output());
  CHECK(newest(folder.path + "/job/checkpoints") == "ckpt-150");  // the last one only
  const std::string sum = whole.out.substr(whole.out.find("\nsum "));
  CHECK_MESSAGE(contains(run.output(), sum), run.output());
}
