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

TEST_CASE(
    "chaos finds each mistake that a program makes of its lives, and none in a right one [slow]") {
  const Folder folder;
  const auto chaos = [&](const std::string& faults, const std::string& kind) {
    return troupe_command("chaos --trials 1 --seed 4 --folder " + folder.path + "/" + kind +
                          " --faults " + faults + " -- " + build_dir() + "/bin/subject " + kind +
                          " --checkpoint-every 400 --quiet");
  };
  const Ended right = chaos("kill-master,nan", "right");
  CHECK_MESSAGE(right.code == 0, right.out, right.err);
  for (const char* kind : {"forgets-position", "older-state", "step-twice", "ends-early"}) {
    const Ended ended = chaos("kill-master", kind);
    CHECK(ended.code == 1);
    CHECK_MESSAGE(contains(ended.out, "BAD the result is another one; see "), kind, ended.out);
  }
  const Ended nan = chaos("nan", "loses-step");
  CHECK(nan.code == 1);
  CHECK_MESSAGE(contains(nan.out, "BAD the result is another one; see "), nan.out);
}

TEST_CASE("a fault that cannot be done is no fault that was survived") {
  const Folder folder;
  const Ended ended = troupe_command("chaos --trials 1 --faults nan --folder " + folder.path +
                                     " -- " + troupe_program() +
                                     " train mnist-softmax --examples 64 --steps 2000 --threads 1 "
                                     "--checkpoint-every 20");
  CHECK(ended.code == 1);
  CHECK_MESSAGE(contains(ended.out, "BAD not done: the program does not catch SIGUSR2"), ended.out);
}

TEST_CASE("chaos cuts, resets and slows connections, and breaks a disk [slow]") {
  const Ended ended = troupe_command(
      "chaos --trials 1 --seed 3 --output json --faults "
      "cut,glitch,half-open,reset,slow-link,io-error,oom -- " +
      troupe_program() +
      " train mnist-softmax --examples 512 --steps 1500 --threads 1 --cluster local:2 "
      "--replicas 2 --checkpoint-every 50");
  REQUIRE_MESSAGE(ended.code == 0, ended.out, ended.err);
  const auto rows = ended.json();
  REQUIRE(rows.size() == 7);
  for (const auto& row : rows) {
    CAPTURE(row.dump());
    CHECK(row["trials"] == 1);
    if (row["fault"] != "oom") CHECK(row["hash_equal"] == 1);
    if (row["fault"] != "oom") CHECK(row["restarts"] == 0);
  }
}

TEST_CASE("a soak disturbs one job again and again, and compares its end [slow]") {
  const std::string program = " -- " + build_dir() + "/bin/subject ";
  const Folder folder;
  const std::string soak =
      "chaos --seed 2 --output json --every 0.2s --faults kill-master --folder ";
  const Ended right = troupe_command(soak + folder.path + "/right --soak 1m" + program +
                                     "right --checkpoint-every 400 --quiet");
  REQUIRE_MESSAGE(right.code == 0, right.out, right.err);
  CHECK(right.json()["hash_equal"] == true);
  CHECK(right.json()["faults"][0]["times"] >= 1);
  CHECK(right.json()["supervisor_last"]["descriptors"] > 0);
  // Over before the job is.
  const Ended longer =
      troupe_command(soak + folder.path + "/longer --soak 1s -- " + troupe_program() +
                     " train mnist-softmax --examples 64 --steps 100000000 "
                     "--threads 1 --checkpoint-every 20");
  CHECK_MESSAGE(longer.code == 0, longer.out, longer.err);
  CHECK(longer.json()["hash_equal"].is_null());
  const Ended wrong = troupe_command(soak + folder.path + "/wrong --soak 1m" + program +
                                     "step-twice --checkpoint-every 400 --quiet");
  CHECK(wrong.code == 1);
  CHECK(contains(wrong.out, "the result is another one"));
}

TEST_CASE("chaos refuses what it does not know, and programs that fail by themselves") {
  const Ended unknown = troupe_command("chaos --faults kill-nobody -- true");
  CHECK(unknown.code == 2);
  CHECK(contains(unknown.err, "there is no fault 'kill-nobody': they are kill-worker, "));
  const Ended soaks = troupe_command("chaos --soak 10 -- true");
  CHECK(soaks.code == 2);
  CHECK(contains(soaks.err, "'10' is not a duration such as 90s"));
  CHECK(troupe_command("chaos --soak 1m --trials 3 -- true").code == 2);
  CHECK(troupe_command("chaos --every 1s -- true").code == 2);
  CHECK(troupe_command("chaos --soak 1m --faults crash-loop -- true").code == 2);
  // A folder of what went wrong is kept.
  Folder folder;
  const Ended fails = troupe_command("chaos --trials 1 --folder " + folder.path +
                                     " -- sh -c 'echo no such luck >&2; exit 3'");
  CHECK(fails.code == 1);
  CHECK_MESSAGE(contains(fails.err, "ends with code 3"), fails.err);
  CHECK(contains(fails.err, "no such luck"));
}

TEST_CASE("status and list show a job, its processes and its checkpoint, and what stands still") {
  constexpr std::chrono::milliseconds kPause(200);  // each look starts a process
  Folder folder;
  const std::string job = folder.path + "/job";
  CHECK(troupe_command("status " + job).code == 1);
  RunningCommand run({"run", "--job", job, "--", build_dir() + "/bin/subject", "rests", "--threads",
                      "1", "--cluster", "local:1", "--checkpoint-every", "10"});
  const auto status = [&] { return troupe_command("status " + job + " --output json").json(); };
  REQUIRE(wait_until(
      [&] {
        const auto now =
            std::filesystem::exists(job + "/position.json") ? status() : nlohmann::json();
        return now.is_object() && now.value("step", 0) > 20 && now["processes"].size() == 3;
      },
      kPause));
  const auto now = status();
  CHECK(now["state"] == "running");
  CHECK(now["lives"] == 1);
  CHECK(now["steps_per_second"] > 0);
  CHECK(now["checkpoint"]["age_seconds"] >= 0);
  CHECK(contains(troupe_command("list").out, job));
  // The program is stopped.
  const pid_t program = processes_of(run.pid()).at(0);
  kill(program, SIGSTOP);
  REQUIRE(
      wait_until([&] { return contains(troupe_command("status " + job).out, "stopped"); }, kPause));
  kill(program, SIGCONT);
  kill(program, SIGKILL);
  REQUIRE(wait_until([&] { return status()["lives"] == 2; }, kPause));
  CHECK(contains(troupe_command("status " + job).out, "was ended by signal 9 (Killed)"));
  run.signal(SIGTERM);
  CHECK(run.end() == 128 + SIGTERM);
  CHECK(status()["state"] == "over");
  CHECK_FALSE(contains(troupe_command("list").out, job));
}
