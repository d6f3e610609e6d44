// What the master makes of workers that join, answer, break off and are lost.
#include "actors/processes/membership.hpp"

#include <doctest/doctest.h>

#include "tests/processes/outputs.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

Join words(std::uint64_t incarnation, const std::string& job = {}) {
  Join join;
  join.incarnation = incarnation;
  join.job = job;
  join.listen_host = "127.0.0.1";
  join.listen_port = std::uint16_t(4000 + incarnation);
  return join;
}

// A master that waits for two workers; peer n is of incarnation n.
struct Job {
  explicit Job(std::size_t workers = 2, Instant start_until = kNever) {
    options.workers = workers;
    options.words.job = "job";
    options.start_until = start_until;
    options.start_within = 20s;
    membership.emplace(options);
  }

  void up(PeerId peer, const std::string& job = {}) {
    membership->up(peer, words(peer, job), now, out);
  }
  void down(PeerId peer, Status why = unavailable("gone")) {
    membership->down(peer, why, now, out);
  }
  void has_devices(ProcessId process) {
    Ready ready;
    ready.process = process;
    ready.devices = {"/job:worker/replica:0/task:" + std::to_string(process - 1) + "/device:CPU:0"};
    membership->ready(process, ready, now, out);
  }
  void connected(ProcessId process, std::uint64_t view = 1) {
    Ready ready;
    ready.process = process;
    ready.view = view;
    membership->ready(process, ready, now, out);
  }
  void link_lost(ProcessId from, ProcessId other, std::uint64_t view = 1) {
    membership->link_lost(from, LinkLost{from, view, other, unavailable("reset")}, now, out);
  }
  void pass(Instant time) {
    now += time;
    membership->tick(now, out);
  }
  // Two workers, peers 1 and 2, up to a job that runs.
  void run(const std::string& job = {}) {
    for (PeerId peer : {1, 2}) up(peer, job);
    for (ProcessId process : {1, 2}) has_devices(process);
    for (ProcessId process : {1, 2}) connected(process);
    REQUIRE(only<Membership::Started>().status.ok());
    out.clear();
  }

  template <class T>
  std::vector<T> all() const {
    return outputs_of<T>(out);
  }
  template <class T>
  T only() const {
    auto found = all<T>();
    REQUIRE(found.size() == 1);
    return found[0];
  }
  template <class M>
  std::vector<M> sent() const {
    return messages_of<Membership::Send, M>(out);
  }

  Membership::Options options;
  std::optional<Membership> membership;
  Membership::Outputs out;
  Instant now{1s};
};

}  // namespace

TEST_CASE("a job runs once all its workers have devices and are connected") {
  Job job;
  job.up(1);
  job.up(2);
  CHECK(job.sent<Welcome>().size() == 2);
  CHECK(job.sent<Welcome>()[1].process == 2);
  CHECK(job.sent<Welcome>()[1].task == TaskId{1});
  job.has_devices(1);
  CHECK(job.sent<Members>().empty());
  job.has_devices(2);
  REQUIRE(job.sent<Members>().size() == 2);
  CHECK(job.sent<Members>()[0].members[1].incarnation == 2);
  job.connected(1);
  CHECK(job.all<Membership::Up>().empty());
  job.connected(2);
  CHECK(job.all<Membership::Up>().size() == 2);
  CHECK(job.all<Membership::Up>()[1].name == "1 at 127.0.0.1:4002");
  CHECK(job.only<Membership::Started>().status.ok());
}

TEST_CASE("a joiner that breaks off frees its place and the job waits on") {
  Job job;
  job.up(1);
  job.up(2);
  job.has_devices(1);
  job.has_devices(2);
  job.down(1);
  job.pass(1h);
  CHECK(job.all<Membership::Started>().empty());
  job.up(3);
  job.has_devices(1);
  REQUIRE(job.sent<Members>().size() == 4);
  CHECK(job.sent<Members>().back().view == 2);
  CHECK(job.sent<Members>().back().members[0].incarnation == 3);
  job.connected(2, 1);  // to those of the view before
  job.connected(1, 2);
  CHECK(job.all<Membership::Started>().empty());
  job.connected(2, 2);
  CHECK(job.only<Membership::Started>().status.ok());
}

TEST_CASE("a worker that the master started and that breaks off fails the start") {
  Job job;
  job.up(1, "job");
  job.down(1);
  CHECK(job.all<Membership::Started>().empty());
  job.pass(job.options.proof_within);
  says(job.only<Membership::Started>().status, Code::unavailable,
       "worker 0 at 127.0.0.1:4001 left while the job started: gone");
}

TEST_CASE("the last words of a worker that the master started are the reason of a failed start") {
  Job job;
  job.up(1, "job");
  job.down(1);
  job.membership->child_ended(failed_precondition("it said: no such option"), job.now, job.out);
  job.pass(1h);
  says(job.only<Membership::Started>().status, Code::failed_precondition, "no such option");
}

TEST_CASE("a worker beyond those wanted waits, and is told when the job runs") {
  Job job;
  for (PeerId peer : {1, 2, 3}) job.up(peer);
  job.down(2);
  CHECK(job.all<Membership::Admit>().back().peer == 3);
  CHECK(job.all<Membership::Admit>().back().process == 2);
  job.up(4);
  CHECK(job.all<Membership::Close>().empty());
  for (ProcessId process : {1, 2}) job.has_devices(process);
  for (ProcessId process : {1, 2}) job.connected(process);
  CHECK(job.only<Membership::Started>().status.ok());
  CHECK(job.only<Membership::Close>().peer == 4);
  says(job.only<Membership::Close>().why, Code::unavailable, "has all its workers");
  job.out.clear();
  job.up(5);
  says(job.only<Membership::Close>().why, Code::unavailable, "has all its workers");
}

TEST_CASE("a spare waits while the job runs, and is told to leave at its end") {
  Job job;
  job.options.spares = 1;
  job.membership.emplace(job.options);
  for (PeerId peer : {1, 2, 3, 4}) job.up(peer);
  for (ProcessId process : {1, 2}) job.has_devices(process);
  for (ProcessId process : {1, 2}) job.connected(process);
  REQUIRE(job.only<Membership::Started>().status.ok());
  CHECK(job.only<Membership::Close>().peer == 4);
  job.out.clear();
  job.down(3);
  job.up(5);  // in its place
  CHECK(job.all<Membership::Lost>().empty());
  CHECK(job.all<Membership::Close>().empty());
  job.up(6);
  says(job.only<Membership::Close>().why, Code::unavailable, "has all its workers");
  job.out.clear();
  job.membership->leave(job.now, job.out);
  CHECK(job.sent<Leave>().size() == 3);
  CHECK(job.only<Membership::Admit>().peer == 5);
  for (PeerId peer : {1, 2}) job.down(peer);
  CHECK(job.all<Membership::Over>().empty());
  job.down(5);
  CHECK(job.all<Membership::Over>().size() == 1);
}

TEST_CASE("a spare is left to wait when its job ends since it lost a worker") {
  Job job;
  job.options.spares = 1;
  job.membership.emplace(job.options);
  for (PeerId peer : {1, 2, 3}) job.up(peer);
  for (ProcessId process : {1, 2}) job.has_devices(process);
  for (ProcessId process : {1, 2}) job.connected(process);
  job.down(2);
  CHECK(job.only<Membership::Lost>().process == 2);
  job.up(4);  // nobody takes a place in a job that runs
  CHECK(job.all<Membership::Admit>().size() == 2);
  job.out.clear();
  job.membership->leave(job.now, job.out);
  CHECK(job.sent<Leave>().empty());
  for (const auto& close : job.all<Membership::Close>())
    CHECK(close.why.code() == Code::unavailable);
  CHECK(job.all<Membership::Close>().size() == 2);
}

TEST_CASE("a worker that cannot compute as the master does makes room for another one") {
  Job job(1);
  job.up(1);
  job.membership->ready(1, Ready{1, {}, failed_precondition("other kernels"), 0}, job.now, job.out);
  says(job.only<Membership::Close>().why, Code::failed_precondition, "other kernels");
  job.up(2);
  CHECK(job.all<Membership::Admit>().size() == 1);  // the number is free when its holder is gone
  job.down(1);
  CHECK(job.all<Membership::Admit>().back().peer == 2);
  job.has_devices(1);
  job.connected(1);
  CHECK(job.only<Membership::Started>().status.ok());
}

TEST_CASE("a joiner that never answers makes room for another one") {
  Job job(1);
  job.up(1);
  CHECK(job.membership->next_wakeup() == job.now + job.options.answer_within);
  job.pass(job.options.answer_within);
  CHECK(job.only<Membership::Close>().peer == 1);
  CHECK(job.all<Membership::Started>().empty());
}

TEST_CASE("of a mesh that does not come about it is the dialling worker that goes") {
  Job job(3);
  for (PeerId peer : {1, 2, 3}) job.up(peer);
  for (ProcessId process : {1, 2, 3}) job.has_devices(process);
  job.connected(1);
  job.pass(job.options.answer_within);
  job.pass(1h);
  CHECK(job.only<Membership::Close>().peer == 3);
  CHECK(job.membership->next_wakeup() == kNever);
  CHECK(job.all<Membership::Started>().empty());
}

TEST_CASE("workers of other ops, passes, devices, jobs or versions are refused") {
  Job job;
  auto refused = [&](auto spoil, const std::string& what) {
    Join join = words(7);
    spoil(join);
    job.out.clear();
    job.membership->up(7, join, job.now, job.out);
    says(job.only<Membership::Close>().why, Code::failed_precondition, what);
  };
  refused([](Join& j) { j.registered.ops = 1; }, "other ops");
  refused([](Join& j) { j.registered.passes = 1; }, "other passes");
  refused([](Join& j) { j.registered.devices = 1; }, "other types of devices");
  refused([](Join& j) { j.job = "another"; }, "another job");
  refused([](Join& j) { ++j.version; }, "protocol version");
  CHECK(job.membership->members() == 0);
}

TEST_CASE("a worker joins once, and takes no number") {
  Job job;
  job.up(1);
  job.membership->up(9, words(1), job.now, job.out);
  says(job.only<Membership::Close>().why, Code::already_exists, "joined already");
  job.out.clear();
  Join join = words(5);
  join.process = 1;
  job.membership->up(5, join, job.now, job.out);
  says(job.only<Membership::Close>().why, Code::invalid_argument, "number");
}

TEST_CASE("workers host the tasks that the master gives them, and are named by these") {
  Job job;
  job.options.tasks = {TaskId{1}, TaskId{0}};
  job.membership.emplace(job.options);
  for (PeerId peer : {1, 2}) job.up(peer);
  const auto welcomes = job.sent<Welcome>();
  REQUIRE(welcomes.size() == 2);
  CHECK(welcomes[0].process == 1);
  CHECK(welcomes[0].task == TaskId{1});
  CHECK(welcomes[1].process == 2);
  CHECK(welcomes[1].task == TaskId{0});
  for (ProcessId process : {1, 2}) {
    Ready ready;
    ready.process = process;
    ready.devices = {"/job:worker/task:" + std::to_string(2 - process) + "/device:CPU:0"};
    job.membership->ready(process, ready, job.now, job.out);
  }
  const auto members = job.sent<Members>();
  REQUIRE(members.size() == 2);
  CHECK(members[0].members[0].task == TaskId{1});
  CHECK(members[0].members[1].task == TaskId{0});
  for (ProcessId process : {1, 2}) job.connected(process);
  const auto ups = job.all<Membership::Up>();
  REQUIRE(ups.size() == 2);
  CHECK(ups[0].process == 1);
  CHECK(ups[0].task == TaskId{1});
  CHECK(ups[0].name == "1 at 127.0.0.1:4001");
  CHECK(ups[1].task == TaskId{0});
}

TEST_CASE("a worker that claims another's device is closed") {
  Job job(1);
  job.up(1);
  for (const char* device :
       {"/job:worker/replica:0/task:1/device:CPU:0", "/device:CPU:0", "", "x"}) {
    Job other(1);
    other.up(1);
    other.membership->ready(1, Ready{1, {device}, {}, 0}, other.now, other.out);
    CHECK(other.only<Membership::Close>().why.code() == Code::invalid_argument);
  }
}

TEST_CASE("a worker is lost once, and none is that was not announced") {
  Job job;
  job.run();
  job.up(3);
  job.out.clear();
  job.down(3);
  CHECK(job.all<Membership::Lost>().empty());
  job.down(2, unavailable("silent for 2000 ms"));
  CHECK(job.only<Membership::Lost>().process == 2);
  says(job.only<Membership::Lost>().why, Code::unavailable, "silent for 2000 ms");
  job.down(2);
  CHECK(job.all<Membership::Lost>().size() == 1);
}

TEST_CASE("a link that breaks between two that live ends with an error that names both") {
  Job job;
  job.run();
  job.link_lost(1, 2);
  job.link_lost(1, 2);
  CHECK(job.out.empty());
  CHECK(job.membership->next_wakeup() == job.now + job.options.proof_within);
  job.pass(job.options.proof_within);
  CHECK(job.only<Membership::Lost>().process == 2);
  says(job.only<Membership::Lost>().why, Code::unavailable,
       "its link to worker 0 at 127.0.0.1:4001 broke: reset");
  CHECK(job.only<Membership::Close>().peer == 2);
  job.down(2);
  CHECK(job.all<Membership::Lost>().size() == 1);
}

TEST_CASE("a link that both of its ends say is broken is judged at once") {
  Job job;
  job.run();
  job.link_lost(1, 2);
  job.link_lost(2, 1);
  CHECK(job.only<Membership::Lost>().process == 2);
  CHECK(job.only<Membership::Close>().peer == 2);
  job.link_lost(1, 2);
  job.down(2);
  job.pass(1h);
  CHECK(job.all<Membership::Lost>().size() == 1);
}

TEST_CASE("a link that breaks since one end died is no news") {
  Job job;
  job.run();
  job.link_lost(2, 1);
  job.down(1, unavailable("closed the connection"));
  job.pass(1h);
  CHECK(job.only<Membership::Lost>().process == 1);
  says(job.only<Membership::Lost>().why, Code::unavailable, "closed the connection");
}

TEST_CASE("a link of a view that is over is no news") {
  Job job;
  job.run();
  job.link_lost(1, 2, 7);
  job.link_lost(1, 1);
  job.link_lost(1, 9);
  job.pass(1h);
  CHECK(job.out.empty());
}

TEST_CASE("workers that cannot reach each other fail the start with both their names") {
  Job job;
  job.up(1);
  job.up(2);
  job.has_devices(1);
  job.has_devices(2);
  job.link_lost(2, 1);
  job.pass(job.options.proof_within);
  Status status = job.only<Membership::Started>().status;
  says(status, Code::unavailable, "0 at 127.0.0.1:4001 and 1 at 127.0.0.1:4002");
}

TEST_CASE("a start has its time, and may be stopped") {
  Job late(2, 21s);
  late.up(1);
  late.pass(20s);
  says(late.only<Membership::Started>().status, Code::deadline_exceeded,
       "1 of 2 workers joined within 20 s");
  Job stopped;
  stopped.up(1);
  stopped.membership->stop(stopped.now, stopped.out);
  says(stopped.only<Membership::Started>().status, Code::cancelled, "1 of 2");
  stopped.down(1);
  stopped.pass(1h);
  CHECK(stopped.all<Membership::Started>().size() == 1);
}

TEST_CASE("a job is over when its workers have left, or had the time for it") {
  Job job;
  job.run();
  job.membership->leave(job.now, job.out);
  CHECK(job.sent<Leave>().size() == 2);
  job.down(1);
  CHECK(job.all<Membership::Over>().empty());
  job.down(2);
  CHECK(job.all<Membership::Over>().size() == 1);
  CHECK(job.all<Membership::Lost>().empty());
  Job slow;
  slow.run();
  slow.membership->leave(slow.now, slow.out);
  slow.pass(slow.options.leave_within);
  slow.pass(1h);
  CHECK(slow.all<Membership::Over>().size() == 1);
}

TEST_CASE("who comes while a job ends that may begin again is told to come again") {
  Job lost;
  lost.run();
  lost.down(1);
  lost.membership->leave(lost.now, lost.out);
  lost.out.clear();
  lost.up(3);
  says(lost.only<Membership::Close>().why, Code::unavailable, "since it lost a worker");
  lost.down(2);
  lost.out.clear();
  lost.up(4);
  says(lost.only<Membership::Close>().why, Code::unavailable, "since it lost a worker");
  Job apart;  // whose workers do not reach each other
  for (PeerId peer : {1, 2}) apart.up(peer);
  for (ProcessId process : {1, 2}) apart.has_devices(process);
  apart.link_lost(2, 1);
  apart.pass(apart.options.proof_within);
  apart.out.clear();
  apart.up(3);
  CHECK(apart.only<Membership::Close>().why.code() == Code::unavailable);
  apart.out.clear();
  apart.membership->leave(apart.now, apart.out);
  CHECK(apart.sent<Leave>().empty());
  for (const auto& close : apart.all<Membership::Close>())
    CHECK(close.why.code() == Code::unavailable);
  Job done;
  done.run();
  done.membership->leave(done.now, done.out);
  done.out.clear();
  done.up(3);
  says(done.only<Membership::Close>().why, Code::failed_precondition, "the job is over");
}

TEST_CASE("a worker of a job that lost another one is not told that the job is done") {
  Job job;
  job.run();
  job.down(1);
  job.membership->leave(job.now, job.out);
  CHECK(job.sent<Leave>().empty());
  says(job.only<Membership::Close>().why, Code::unavailable, "since it lost a worker");
  job.down(2);
  CHECK(job.all<Membership::Over>().size() == 1);
}
