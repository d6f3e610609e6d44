// How long a process of a job may say nothing.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <future>

#include "actors/runtime/registered.hpp"
#include "tests/actors/support/sessions.hpp"
#include "tests/actors/worker/hostile_job.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace troupe::testing;
using namespace std::chrono_literals;

TEST_CASE("a worker leaves a master that is silent for longer than was agreed") {
  HostileJob job(250ms);
  CHECK(job.control().closed());
  says(job.ended(), Code::unavailable, "the peer was silent for");
}

TEST_CASE("a session gives up a joiner that is silent for longer than was agreed, and waits on") {
  ReservedPort port;
  std::atomic<bool> given_up{false};
  Cluster cluster;
  cluster.listen = "127.0.0.1:" + std::to_string(port.number());
  cluster.wait_for = 1;
  cluster.secret = kSecret;
  cluster.silence = 250ms;
  cluster.stop = [&] { return given_up.load(); };
  auto session = std::async(std::launch::async, [&] { return open_session(cluster); });
  std::unique_ptr<Line> control, data;
  Join join;
  join.registered = registered();
  while (introduce(port.number(), join, control, data) != FrameType::ready) {
    // It does not listen yet.
  }
  bool welcome = false;
  while (auto frame = control->frame()) welcome |= frame->type == FrameType::message;
  CHECK(welcome);
  CHECK(!control->open());
  given_up = true;
  says(session.get(), Code::cancelled, "workers had joined");
}

TEST_CASE("a silence that no process could keep is refused, and workers are told which is meant") {
  Cluster cluster;
  cluster.workers = 1;
  cluster.silence = 249ms;
  says(open_session(cluster), Code::invalid_argument, "249 ms");
  CHECK(limits_with(250ms).value().silence == 250ms);
  CHECK(limits_with(std::chrono::milliseconds::max()).value().silence == 24h);
  WorkerProcessOptions options;
  options.master = options.listen = {"127.0.0.1", 1};
  options.silence = 12'345ms;
  CHECK(parse_worker_settings(worker_settings_text(options)).value().silence == 12'345ms);
  options.master = {"::1", 7077};
  CHECK(parse_worker_settings(worker_settings_text(options)).value().master == options.master);
}

TEST_CASE("a local worker leaves a silent master unless that is stopped") {
  const pid_t master = fork();  // what the worker takes for its master's process
  REQUIRE(master >= 0);
  if (master == 0)
    for (;;) pause();
  kill(master, SIGSTOP);
  siginfo_t info{};
  REQUIRE(waitid(P_PID, id_t(master), &info, WSTOPPED) == 0);
  HostileJob patient(250ms, master);
  {
    HostileJob impatient(250ms);  // which tells when the limit is over
    CHECK(impatient.control().closed());
  }
  CHECK(patient.control().open());
  kill(master, SIGCONT);
  CHECK(patient.control().closed());
  says(patient.ended(), Code::unavailable, "the peer was silent for");
  kill(master, SIGKILL);
  waitpid(master, nullptr, 0);
}
