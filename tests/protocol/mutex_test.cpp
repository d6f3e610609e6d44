// Mutexes: who gets its turn, what the master makes of it, and what runs may do with them.
#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>

#include "actors/master/coordinator.hpp"
#include "actors/master/wait_lines.hpp"
#include "actors/resources/mutex_state.hpp"
#include "core/hash.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

MutexUses uses_of(std::initializer_list<const char*> names) {
  MutexUses uses;
  for (const char* name : names)
    uses.push_back({{"", name}, std::string("lock_") + name, "MutexAcquire", "prog.cpp:7"});
  return uses;
}

// The master beside what its workers do, which is as much as it says.
struct LockingJob {
  Coordinator coordinator{Coordinator::Options{.max_active = 6}};
  Coordinator::Outputs out;
  Instant now{};
  std::size_t seen = 0;
  std::map<RunId, AttemptInfo> running;  // started, and neither done nor answered
  std::map<RunId, Coordinator::Answer> answers;
  std::map<RunId, std::vector<CommitNumber>> snapshots;  // of its attempts
  std::vector<RunId> begun;                              // in order, each once

  LockingJob() {
    coordinator.add_task(TaskId{1}, "/worker:1", true);
    coordinator.open_session(7);
  }
  static std::shared_ptr<StepShape> step(MutexUses mutexes) {
    auto shape = std::make_shared<StepShape>();
    shape->partitions.push_back({TaskId{1}, "/worker:1/cpu:0", {}});
    shape->mutexes = std::move(mutexes);
    return shape;
  }
  RunId run(std::uint64_t n, MutexUses mutexes, Instant deadline = kNever) {
    const RunId id{7, n};
    coordinator.run({id, step(std::move(mutexes)), deadline}, now, out);
    read();
    return id;
  }
  // Computes all it has to, and writes something, unless the attempt failed.
  void done(const RunId& id, Status status, Uses uses = {}) {
    const auto at = running.extract(id);
    PartitionDone message;
    message.attempt = at.mapped().id;
    message.run = id;
    message.status = std::move(status);
    if (message.status.ok()) message.writes.push_back({{TaskId{1}, 3}, 1});
    message.uses = std::move(uses);
    coordinator.partition_done(message, now, out);
    read();
  }
  void cancel(const RunId& id) {
    coordinator.cancel(id, cancelled("enough"), now, out);
    read();
  }
  void tick(Instant later) {
    now += later;
    coordinator.tick(now, out);
    read();
  }
  void read() {
    for (; seen < out.size(); ++seen) {
      if (auto* start = std::get_if<Coordinator::StartAttempt>(&out[seen])) {
        auto& all = snapshots[start->attempt.run];
        if (running.contains(start->attempt.run) &&
            running[start->attempt.run].id == start->attempt.id)
          continue;  // sent again
        if (all.empty()) begun.push_back(start->attempt.run);
        all.push_back(start->attempt.snapshot);
        running[start->attempt.run] = start->attempt;
      } else if (auto* prepare = std::get_if<Coordinator::SendPrepare>(&out[seen])) {
        const Prepare p = prepare->prepare;
        coordinator.staged({1, TaskId{1}, p.s, 0, p.round, {}}, now, out);
      } else if (auto* answer = std::get_if<Coordinator::Answer>(&out[seen])) {
        answers[answer->run] = *answer;
        running.erase(answer->run);
      }
    }
  }
  std::string waits_for(const RunId& id) {
    JobLook look;
    look.runs = coordinator.looks(now);
    for (const Wait& wait : waits_of(look))
      if (wait.run == step_name(id)) return wait.text();
    return {};
  }
};

}  // namespace

TEST_CASE(
    "runs that acquire one mutex begin one after the other, in the order in which they came") {
  LockingJob job;
  const RunId first = job.run(0, uses_of({"m"})), second = job.run(1, uses_of({"m"})),
              third = job.run(2, uses_of({"m"})), other = job.run(3, uses_of({"n"})),
              free = job.run(4, {});
  CHECK(job.running.size() == 3);
  CHECK(job.running.contains(first));
  CHECK(job.running.contains(other));
  CHECK(job.running.contains(free));
  job.done(first, ok_status());
  CHECK(job.answers.at(first).committed == 1);
  CHECK(job.running.contains(second));
  CHECK(job.snapshots.at(second) == std::vector<CommitNumber>{1});  // with what the first wrote
  CHECK_FALSE(job.running.contains(third));
  job.done(second, invalid_argument("no"));
  CHECK(job.running.contains(third));
}

TEST_CASE("a wait for a mutex names who holds it, the node and its line") {
  LockingJob job;
  const RunId first = job.run(0, uses_of({"m"}));
  const RunId second = job.run(1, uses_of({"n", "m"})), third = job.run(2, uses_of({"n"}));
  job.tick(2s);
  CHECK(job.waits_for(second) ==
        "step 1 of session 7 waits 2.0 s for mutex 'm', which step 0 holds, in node "
        "'lock_m' (MutexAcquire) at prog.cpp:7");
  CHECK(job.waits_for(third) ==
        "step 2 of session 7 waits 2.0 s for mutex 'n', for which step 1 waits before "
        "it, in node 'lock_n' (MutexAcquire) at prog.cpp:7");
  job.cancel(first);
  CHECK(job.running.contains(second));
  CHECK(job.waits_for(third).find("mutex 'n', which step 1 holds") != std::string::npos);
}

TEST_CASE("a wait for a mutex ends at the run's deadline, and with its session") {
  LockingJob job;
  const RunId first = job.run(0, uses_of({"m"})), second = job.run(1, uses_of({"m"}), 1s),
              third = job.run(2, uses_of({"m"}));
  job.tick(1s);
  CHECK(job.answers.at(second).status.code() == Code::deadline_exceeded);
  job.done(first, ok_status());
  CHECK(job.running.contains(third));
  const RunId fourth = job.run(3, uses_of({"m"}));
  job.coordinator.close_session(7, job.now, job.out);
  job.read();
  CHECK(job.answers.at(third).status.code() == Code::cancelled);
  CHECK(job.answers.at(fourth).status.code() == Code::cancelled);
  CHECK(job.coordinator.tables().mutexes == 0);
}

TEST_CASE("who holds mutexes in any order goes on, under any schedule, and nothing is done again") {
  const std::uint64_t first_seed = std::random_device{}();
  const char* const kNames[] = {"a", "b", "c", "d"};
  std::size_t waited = 0, ended_otherwise = 0;
  for (std::uint64_t seed = first_seed; seed < first_seed + 600; ++seed) {
    INFO("seed " << seed);
    Random random(mix64(seed));
    LockingJob job;
    std::map<RunId, std::set<std::string>> wanted;
    const auto check_all = [&] {
      std::map<std::string, RunId> held;
      for (const auto& running : job.running)
        for (const std::string& name : wanted.at(running.first)) {
          const RunId run = running.first;
          INFO(name << " is held by " << run.n);
          CHECK(held.emplace(name, run).second);
        }
    };
    for (std::uint64_t n = 0; n < 24 || !job.running.empty();) {
      const std::uint64_t dice = random.below(10);
      if (dice < 4 && n < 24) {
        const RunId id{7, n++};
        std::vector<const char*> names(std::begin(kNames), std::end(kNames));
        MutexUses uses;
        for (std::uint64_t k = random.below(4); k > 0; --k) {
          const std::size_t at = random.below(names.size());
          uses.push_back({{"", names[at]}, "n", "MutexAcquire", ""});
          wanted[id].insert(names[at]);
          names.erase(names.begin() + std::ptrdiff_t(at));
        }
        wanted[id];
        job.run(id.n, std::move(uses), random.below(6) == 0 ? job.now + 5ms : kNever);
      } else if (dice < 8 && !job.running.empty()) {
        auto at = job.running.begin();
        std::advance(at, std::ptrdiff_t(random.below(job.running.size())));
        const RunId id = at->first;
        // Each mutex guards a variable, which its holder reads and writes.
        Uses uses;
        for (const std::string& name : wanted.at(id)) uses.reads.push_back(std::uint64_t(name[0]));
        uses.updates = uses.reads;
        job.done(id, random.below(8) == 0 ? invalid_argument("no") : ok_status(), uses);
      } else if (dice == 8 && n > 0) {
        job.cancel({7, random.below(n)});
      } else {
        job.tick(1ms);
      }
      check_all();
      waited += !job.waits_for({7, n == 0 ? 0 : n - 1}).empty();
    }
    CHECK(job.answers.size() == 24);
    CHECK(job.coordinator.counters().conflicts == 0);
    CHECK(job.coordinator.tables().mutexes == 0);
    for (const auto& [run, answer] : job.answers) ended_otherwise += !answer.status.ok();
    // Of two runs that wanted the same mutex the older one began first.
    for (std::size_t later = 0; later < job.begun.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const auto &a = wanted.at(job.begun[earlier]), &b = wanted.at(job.begun[later]);
        const bool shared =
            std::any_of(a.begin(), a.end(), [&](const std::string& m) { return b.contains(m); });
        if (shared) CHECK(job.begun[earlier] < job.begun[later]);
      }
    job.coordinator.acknowledge(7, {24, {}});
    job.tick(1s);
    CHECK(job.coordinator.tables().empty());
  }
  CHECK(waited > 500);
  CHECK(ended_otherwise > 500);
}

TEST_CASE("a holder that others overtake is done again, and holds its mutex until it is over") {
  LockingJob job;
  const RunId first = job.run(0, uses_of({"m"})), second = job.run(1, uses_of({"m"}));
  const RunId other = job.run(2, {});
  Uses writes;
  writes.updates = {5};
  job.done(other, ok_status(), writes);
  Uses reads;
  reads.reads = {5};
  job.done(first, ok_status(), reads);
  CHECK(job.snapshots.at(first) == std::vector<CommitNumber>{0, 1});
  CHECK_FALSE(job.running.contains(second));
  job.done(first, ok_status(), reads);
  CHECK(job.running.contains(second));
}

TEST_CASE("the process of a mutex may be lost: its holders end, and nobody waits for them") {
  LockingJob job;
  job.coordinator.add_task(TaskId{2}, "/worker:2", false);
  auto there = LockingJob::step(uses_of({"m"}));
  there->partitions[0].task = TaskId{2};
  job.coordinator.run({{7, 0}, there}, job.now, job.out);
  const RunId waits = job.run(1, uses_of({"m"}));
  job.coordinator.task_lost(TaskId{2}, unavailable("killed"), job.now, job.out);
  job.read();
  CHECK(job.answers.at({7, 0}).status.code() == Code::unavailable);
  CHECK(job.running.contains(waits));
}

// ------------------------------------------------------------------ at the mutex

namespace {

struct AskedMutex {
  MutexState mutex{"m"};
  Resource::Outputs out;
  External external{.resource = "mutex"};
  PlanInfo node;

  Status ask(const char* verb, std::uint64_t a, std::uint32_t replica = 0) {
    external.verb = verb;
    node.external = &external;
    ResourceRequest request;
    request.attempt = {{1, a}, {1, a}, 0, a, 0, 0};
    request.items.push_back({.node = &node, .key = {1, replica, {}}});
    mutex.ask(a, request, out);
    return std::get<ResourceReply>(out.back()).status;
  }
};

}  // namespace

TEST_CASE("a run acquires and releases a mutex in turn, each replica for itself") {
  AskedMutex m;
  CHECK(m.ask("acquire", 1).ok());
  CHECK(m.ask("acquire", 1).message() ==
        "the run holds mutex 'm' already: it has to release it before it acquires it again");
  CHECK(m.ask("acquire", 1, 1).ok());
  CHECK(m.ask("release", 1).ok());
  CHECK(m.ask("release", 1).message() ==
        "the run does not hold mutex 'm': it has to acquire it before it releases it");
  CHECK(m.ask("acquire", 1).ok());
  CHECK(m.ask("acquire", 2).ok());  // another attempt, perhaps of the same run
  CHECK(m.ask("release", 3).code() == Code::failed_precondition);
  CHECK(m.ask("borrow", 3).code() == Code::unimplemented);
  CHECK(m.mutex.save().status().code() == Code::unimplemented);
  m.mutex.live({1, 1, 0, 0, 9, {}}, m.out);
  CHECK(m.mutex.attempts() == 0);
  CHECK(m.ask("acquire", 1).code() == Code::aborted);
}
