// `troupe chaos` and `troupe status`: faults are injected and measured, and seen from outside.
#include <doctest/doctest.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "tests/apps/command.hpp"
#include "tests/apps/folder.hpp"
#include "tests/apps/job_processes.hpp"
#include "tests/apps/running_command.hpp"

using namespace troupe::test;

namespace {

const std::string kTrain =
    " train mnist-softmax --examples 512 --steps 300 --threads 1 --cluster local:1 "
    "--checkpoint-every 20";

}  // namespace

TEST_CASE(
    "chaos: what goes on does so to the same bits, and a crash loop ends with its cause [slow]") {
  const Ended ended = troupe_command(
      "chaos --trials 1 --seed 3 --output json --faults "
      "kill-worker,kill-master,corrupt-checkpoint,crash-loop -- " +
      troupe_program() + kTrain);
  REQUIRE_MESSAGE(ended.code == 0, ended.out, ended.err);
  const auto rows = ended.json();
  REQUIRE(rows.size() == 4);
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    CHECK(row["trials"] == 1);
    const bool ends = row["fault"] == "crash-loop";
    CHECK(row["went_on"] == (ends ? 0 : 1));
    CHECK(row["hash_equal"] == (ends ? 0 : 1));
    if (!ends) CHECK(row["next_step_ms_p50"] > 0);
    CHECK(row["restarts"] == (row["fault"] == "kill-worker" ? 0 : ends ? 4 : 1));
  }
}

TEST_CASE("chaos finds a program whose result depends on its lives") {
  Folder folder;
  const std::string program = folder.path + "/program";
  // A later life forgets where it was.
  std::ofstream(program) << "#!/bin/sh\n"
                            "cd $TROUPE_JOB; [ -e again ] && rm -rf checkpoints && exec "
                         << troupe_program() << kTrain << " --seed 2\ntouch again; exec "
                         << troupe_program() << kTrain << "\n";
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const Ended ended = troupe_command("chaos --trials 1 --seed 3 --faults kill-master --folder " +
                                     folder.path + " -- " + program);
  CHECK(ended.code == 1);
  CHECK_MESSAGE(contains(ended.out, "BAD the result is another one; see "), ended.out);
}

TEST_CASE("chaos refuses what it does not know, and programs that fail by themselves") {
  const Ended unknown = troupe_command("chaos --faults kill-nobody -- true");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "there is no fault 'kill-nobody': they are kill-worker, "));
  const Ended fails = troupe_command("chaos --trials 1 -- sh -c 'echo no such luck >&2; exit 3'");
  CHECK(fails.code == 1);
  CHECK_MESSAGE(contains(fails.err, "ends with code 3"), fails.err);
  CHECK(contains(fails.err, "no such luck"));
}

TEST_CASE("status and list show a job, its processes and its checkpoint, and what stands still") {
  Folder folder;
  const std::string job = folder.path + "/job";
  CHECK(troupe_command("status " + job).code == 1);
  RunningCommand run({"run", "--job", job, "--", troupe_program(), "train", "mnist-softmax",
                      "--examples", "512", "--steps", "100000000", "--threads", "1", "--cluster",
                      "local:1", "--checkpoint-every", "20"});
  const auto status = [&] { return troupe_command("status " + job + " --output json").json(); };
  REQUIRE(wait_until([&] {
    const auto now = std::filesystem::exists(job + "/position.json") ? status() : nlohmann::json();
    return now.is_object() && now.value("step", 0) > 20 && now["processes"].size() == 3;
  }));
  const auto now = status();
  CHECK(now["state"] == "running");
  CHECK(now["lives"] == 1);
  CHECK(now["steps_per_second"] > 0);
  CHECK(now["checkpoint"]["age_seconds"] >= 0);
  CHECK(contains(troupe_command("list").out, job));
  // The program is stopped.
  const pid_t program = processes_of(run.pid()).at(0);
  kill(program, SIGSTOP);
  REQUIRE(wait_until([&] { return contains(troupe_command("status " + job).out, "stopped"); }));
  kill(program, SIGCONT);
  kill(program, SIGKILL);
  REQUIRE(wait_until([&] { return status()["lives"] == 2; }));
  CHECK(contains(troupe_command("status " + job).out, "was ended by signal 9 (Killed)"));
  run.signal(SIGTERM);
  CHECK(run.end() == 128 + SIGTERM);
  CHECK(status()["state"] == "over");
  CHECK_FALSE(contains(troupe_command("list").out, job));
}
