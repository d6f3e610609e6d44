#include "actors/master/coordinator.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "actors/master/run_numbers.hpp"

using namespace troupe;
using namespace std::chrono_literals;

namespace {

struct CoordinatorFixture {
  Coordinator coordinator;
  Coordinator::Outputs out;
  Instant now{};

  explicit CoordinatorFixture(Coordinator::Options options = {}) : coordinator(options) {
    coordinator.add_task(TaskId{0}, "/master", false);
    coordinator.add_task(TaskId{1}, "/worker:1", true);
    coordinator.add_task(TaskId{2}, "/worker:2", true);
    coordinator.add_task(TaskId{3}, "/worker:3", false);
    coordinator.open_session(7);
  }
  static std::shared_ptr<StepShape> shape(std::vector<std::uint32_t> tasks, bool fast = false) {
    auto s = std::make_shared<StepShape>();
    for (std::uint32_t task : tasks)
      s->partitions.push_back({TaskId(task), "/worker:" + std::to_string(task) + "/cpu:0", {}});
    s->fast_path = fast;
    return s;
  }
  void run(std::uint64_t n, std::shared_ptr<StepShape> step, Acknowledged acknowledged = {},
           Instant deadline = kNever) {
    coordinator.run({{7, n}, std::move(step), deadline, acknowledged}, now, out);
  }
  template <class T>
  std::vector<T> all() {
    std::vector<T> found;
    for (auto& o : out)
      if (auto* m = std::get_if<T>(&o)) found.push_back(*m);
    return found;
  }
  AttemptInfo started(std::uint64_t n) {
    auto starts = all<Coordinator::StartAttempt>();
    for (auto s = starts.rbegin(); s != starts.rend(); ++s)
      if (s->attempt.run.n == n) return s->attempt;
    FAIL("run " << n << " was not started");
    return {};
  }
  // With so many writes at each of two shards.
  PartitionDone done(const AttemptInfo& a, std::uint32_t partition, std::uint32_t keys = 0) {
    PartitionDone d;
    d.attempt = a.id;
    d.run = a.run;
    d.partition = partition;
    if (keys > 0) d.writes = {{{TaskId{1}, 0}, keys}, {{TaskId{2}, 0}, keys}};
    d.fetches.push_back({partition, Tensor::scalar<std::int64_t>(std::int64_t(a.id.a))});
    return d;
  }
  void run_resume(std::uint64_t n, JobPlace place, std::shared_ptr<StepShape> step) {
    RunRequest request{{7, n}, std::move(step)};
    request.with_place = true;
    request.resume = std::make_shared<const JobPlace>(std::move(place));
    coordinator.run(request, now, out);
  }
  // Run n restores a job.
  void resume(std::uint64_t n, JobPlace place) {
    const CommitNumber s = place.committed;
    run_resume(n, std::move(place), shape({1}));
    send(done(started(n), 0, 1));
    stage(1, s);
    stage(2, s);
    REQUIRE(answer(n).committed == s);
  }
  void send(const PartitionDone& d) { coordinator.partition_done(d, now, out); }
  // Its answer to the PREPARE that came last.
  void stage(std::uint32_t shard, CommitNumber s, Status status = {}) {
    const std::uint64_t round = all<Coordinator::SendPrepare>().back().prepare.round;
    coordinator.staged({1, TaskId(shard), s, 0, round, std::move(status)}, now, out);
  }
  // Both shards have dropped what was taken back.
  void give_back() {
    REQUIRE(coordinator.tables().undecided == 1);
    for (std::uint32_t shard : {1, 2}) stage(shard, coordinator.decided() + 1);
  }
  void tick(Instant later) {
    now += later;
    coordinator.tick(now, out);
  }
  Coordinator::Answer answer(std::uint64_t n) {
    auto answers = all<Coordinator::Answer>();
    for (auto a = answers.rbegin(); a != answers.rend(); ++a)
      if (a->run.n == n) return *a;
    FAIL("run " << n << " was not answered");
    return {};
  }
  std::size_t answers() { return all<Coordinator::Answer>().size(); }
  void commit(std::uint64_t n, Uses uses = {}) {
    auto d = done(started(n), 0, 1);
    d.uses = std::move(uses);
    send(d);
    const CommitNumber s = coordinator.decided() + 1;
    stage(1, s);
    stage(2, s);
  }
};

struct ExplainedFixture : CoordinatorFixture {
  ExplainedFixture() : CoordinatorFixture(options()) {}
  static Coordinator::Options options() {
    Coordinator::Options options;
    options.explain_before = 2ms;
    options.explain_within = 500ms;
    options.explain_from = 10ms;
    return options;
  }
  std::size_t asked() { return all<Coordinator::ExplainDeadline>().size(); }
};

}  // namespace

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a writing run is answered when every shard that it wrote to has staged it") {
  run(0, shape({1, 2}));
  auto a = started(0);
  CHECK(a.snapshot == 0);
  send(done(a, 1, 2));
  CHECK(all<Coordinator::SendPrepare>().empty());
  send(done(a, 0, 3));
  auto prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 2);
  CHECK(prepares[0].prepare.s == 1);
  REQUIRE(prepares[0].prepare.resources.size() == 1);
  CHECK(prepares[0].prepare.resources[0].keys == 5);
  REQUIRE(prepares[1].prepare.resources.size() == 1);
  CHECK(prepares[1].prepare.resources[0].resource.task == TaskId{2});
  stage(1, 1);
  stage(1, 1);
  CHECK(answers() == 0);
  stage(2, 1);
  CHECK(answer(0).status.ok());
  CHECK(answer(0).committed == 1);
  CHECK(answer(0).fetches.size() == 2);
  CHECK(coordinator.decided() == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a shard that a run did not write to has no part in its commit") {
  for (std::uint32_t shard : {1, 2, 1, 2}) {
    out.clear();
    const CommitNumber s = coordinator.decided() + 1;
    run(s, shape({1, 2}));
    auto d = done(started(s), 0);
    d.writes = {{{TaskId(shard), 0}, 2}, {{TaskId(3 - shard), 0}, 0}};
    send(d);
    send(done(started(s), 1));
    const auto told = all<Coordinator::SendPrepare>();
    REQUIRE(told.size() == 1);
    CHECK(told[0].shard == TaskId(shard));
    stage(3 - shard, s);  // nobody asked it
    CHECK(answers() == 0);
    stage(shard, s);
    CHECK(answer(s).committed == s);
  }
  // Nor in its being taken back.
  out.clear();
  run(5, shape({1}));
  auto d = done(started(5), 0);
  d.writes = {{{TaskId{2}, 0}, 1}};
  send(d);
  coordinator.cancel({7, 5}, cancelled("enough"), now, out);
  const auto told = all<Coordinator::SendPrepare>();
  REQUIRE(told.size() == 2);
  CHECK(told[1].shard == TaskId{2});
  CHECK(told[1].prepare.order == StageOrder::withdraw);
  CHECK(coordinator.tables().undecided == 1);
  stage(2, 5);
  CHECK(coordinator.tables().undecided == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run that wrote nothing takes no number") {
  run(0, shape({1}));
  send(done(started(0), 0));
  CHECK(answer(0).committed == 0);
  CHECK(coordinator.decided() == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run is executed once, however often it is asked for") {
  run(0, shape({1}));
  run(0, shape({1}));
  CHECK(all<Coordinator::StartAttempt>().size() == 1);
  commit(0);
  run(0, shape({1}));
  CHECK(answers() == 2);  // the same answer again
  CHECK(all<Coordinator::StartAttempt>().size() == 1);
  CHECK(coordinator.tables().answers == 1);
  run(1, shape({1}), {1, {}});
  CHECK(coordinator.tables().answers == 0);
  run(0, shape({1}), {1, {}});
  CHECK(all<Coordinator::StartAttempt>().size() == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that was refused stays refused, however often it is asked for") {
  run_resume(0, {5}, shape({1}));
  run_resume(1, {6}, shape({1}));
  REQUIRE(answer(1).status.code() == Code::failed_precondition);
  coordinator.cancel({7, 0}, cancelled("enough"), now, out);
  out.clear();
  run_resume(1, {6}, shape({1}));  // its request came twice, and would be accepted now
  CHECK(answer(1).status.code() == Code::failed_precondition);
  CHECK(all<Coordinator::StartAttempt>().empty());
}

TEST_CASE_FIXTURE(CoordinatorFixture, "an action is done once, and says after which commit") {
  run(0, shape({1}));
  commit(0);
  CHECK(coordinator.begin_action({7, 1}, {1, {}}, out));
  CHECK_FALSE(coordinator.begin_action({7, 1}, {1, {}}, out));  // it is under way
  CHECK(coordinator.is_under_way({7, 1}));
  coordinator.end_action({7, 1}, failed_precondition("a run reads it"), out);
  CHECK(answer(1).seen == 1);
  CHECK(answer(1).committed == 0);
  run(2, shape({1}), {1, {}});
  commit(2);
  out.clear();
  CHECK_FALSE(coordinator.begin_action({7, 1}, {1, {}}, out));  // its answer was lost
  CHECK(answer(1).status.code() == Code::failed_precondition);
  CHECK(answer(1).seen == 1);
  out.clear();
  CHECK_FALSE(coordinator.begin_action({7, 1}, {3, {}}, out));  // it came before, and late
  CHECK(answers() == 0);
  CHECK_FALSE(coordinator.begin_action({8, 0}, {0, {}}, out));  // of no session
  CHECK(answers() == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "answers do not pile up behind a run that takes long") {
  RunNumbers numbers(0);
  auto begin = [&] {
    const std::uint64_t n = numbers.next();
    run(n, shape({1}), numbers.acknowledged());
    return n;
  };
  const std::uint64_t waits = begin();
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t n = begin();
    send(done(started(n), 0));
    numbers.answered(n);
    CHECK(coordinator.tables().answers == 1);  // the client has it, the coordinator does not know
    out.clear();
  }
  run(500, shape({1}), numbers.acknowledged());  // on its way for long: nobody asks any more
  CHECK(out.empty());
  CHECK(coordinator.tables().answers == 0);
  run(waits, shape({1}));
  CHECK(out.empty());  // it is under way
  CHECK(coordinator.tables().runs == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a request that later ones have overtaken is carried out") {
  run(3, shape({1}), {3, {1}});
  run(1, shape({1}), {2, {1}});
  CHECK(started(1).run.n == 1);
  run(2, shape({1}), {2, {1}});
  CHECK(all<Coordinator::StartAttempt>().size() == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "the first committer wins and the other is done again") {
  run(0, shape({1}));
  run(1, shape({1}));
  commit(0, {{}, {42}, {}, {}});
  auto loser = done(started(1), 0, 1);
  loser.uses.reads = {42};
  send(loser);
  CHECK(coordinator.counters().conflicts == 1);
  auto again = started(1);
  CHECK(again.id.a == 3);
  CHECK(again.snapshot == 1);
  CHECK(again.marks_from == 2);  // it keeps the elements it had marked
  send(loser);                   // of the attempt before: too late
  commit(1);
  CHECK(answer(1).committed == 2);
  CHECK(coordinator.tables().last_writers == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "an immediate run is done once, and says how far behind it was") {
  const auto immediate = [&](std::uint64_t n) {
    RunRequest request{{7, n}, shape({1})};
    request.commit = Commit::immediate;
    coordinator.run(request, now, out);
  };
  for (std::uint64_t n : {0, 1, 2, 3}) immediate(n);
  commit(0, {{42}, {42}, {}, {}});
  commit(1, {{42}, {42}, {}, {}});
  commit(2, {{43}, {42}, {}, {}});  // nobody has changed what it read
  commit(3, {{42}, {42}, {}, {}});
  CHECK(coordinator.counters().conflicts == 0);
  CHECK(coordinator.counters().attempts == 4);
  for (std::uint64_t n : {0, 1, 2, 3}) CHECK(answer(n).committed == n + 1);
  CHECK(answer(0).behind == 0);
  CHECK(answer(1).behind == 1);
  CHECK(answer(2).behind == 0);
  CHECK(answer(3).behind == 3);
  CHECK(coordinator.tables().last_writers == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "an immediate run whose element of a queue is another's is repeated") {
  run(0, shape({1}));
  RunRequest request{{7, 1}, shape({1})};
  request.commit = Commit::immediate;
  coordinator.run(request, now, out);
  commit(0, {{}, {}, {}, {42}});
  auto loser = done(started(1), 0, 1);
  loser.uses.own_dequeues = {42};
  send(loser);
  CHECK(coordinator.counters().conflicts == 1);
  CHECK(started(1).snapshot == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "blind updates do not conflict") {
  run(0, shape({1}));
  run(1, shape({1}));
  commit(0, {{}, {42}, {}, {}});
  commit(1, {{}, {42}, {}, {}});
  CHECK(coordinator.counters().conflicts == 0);
  CHECK(coordinator.decided() == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a lone run on the fast path needs no prepare") {
  run(0, shape({1}, true));
  auto starts = all<Coordinator::StartAttempt>();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].grant == 1);
  run(1, shape({1}, true));
  CHECK(all<Coordinator::StartAttempt>()[1].grant == 0);  // not alone
  send(done(started(1), 0, 1));
  CHECK(all<Coordinator::SendPrepare>().empty());  // number 1 is given away
  auto d = done(started(0), 0, 1);
  d.fast_committed = 1;
  send(d);
  CHECK(answer(0).committed == 1);
  auto prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 2);
  CHECK(prepares[0].prepare.s == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a cancelled run that may have used its number waits for the word") {
  run(0, shape({1}, true));
  auto a = started(0);
  coordinator.cancel({7, 0}, cancelled("enough"), now, out);
  CHECK(answers() == 0);
  CHECK(all<Coordinator::AbortAttempt>().size() == 1);
  auto d = done(a, 0, 1);
  d.fast_committed = 1;
  send(d);
  CHECK(answer(0).status.ok());
  run(1, shape({1}, true));
  coordinator.cancel({7, 1}, cancelled("enough"), now, out);
  auto e = done(started(1), 0);
  e.status = aborted("stopped");
  send(e);
  CHECK(answer(1).status.code() == Code::cancelled);
  CHECK(coordinator.decided() == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "the first cause wins") {
  run(0, shape({1, 2, 3}));
  auto a = started(0);
  auto root = done(a, 1);
  root.status = invalid_argument("MatMul");
  send(root);
  CHECK(answer(0).status.code() == Code::invalid_argument);
  auto late = done(a, 2);
  late.status = internal_error("later");
  send(late);
  CHECK(answers() == 1);
}

TEST_CASE_FIXTURE(ExplainedFixture, "what a run waits for is asked before its deadline") {
  // Told in time: it ends at its deadline, and says it.
  run(1, shape({1}), {}, now + 20ms);
  CHECK(coordinator.next_wakeup() <= now + 18ms);
  tick(17ms);
  CHECK(asked() == 0);
  tick(1ms);
  REQUIRE(asked() == 1);
  coordinator.explained({{{7, 1}, "for a queue"}}, now, out);
  tick(1ms);
  CHECK(answers() == 0);
  CHECK(coordinator.next_wakeup() <= now + 1ms);
  tick(1ms);
  CHECK(answer(1).status.text().find("has passed: for a queue") != std::string::npos);

  // Told later: it ends when it is told, not before, and once.
  run(2, shape({1}), {}, now + 20ms);
  tick(18ms);
  tick(100ms);
  CHECK(answers() == 1);
  coordinator.explained({{{7, 2}, ""}}, now, out);
  CHECK(answer(2).status.code() == Code::deadline_exceeded);
  CHECK(answer(2).status.text().find(": ") == answer(2).status.text().rfind(": "));
  coordinator.explained({{{7, 2}, "late"}}, now, out);
  CHECK(answers() == 2);

  // Never told: it ends all the same.
  run(3, shape({1}), {}, now + 20ms);
  tick(18ms);
  tick(501ms);
  CHECK(answers() == 2);
  tick(1ms);
  CHECK(answer(3).status.code() == Code::deadline_exceeded);
  CHECK(asked() == 3);

  // The owner slept: asked once the deadline has passed.
  run(4, shape({1}), {}, now + 20ms);
  tick(30ms);
  CHECK(asked() == 4);
  CHECK(answers() == 3);
  coordinator.explained({{{7, 4}, "for a mutex"}}, now, out);
  CHECK(answer(4).status.text().find("for a mutex") != std::string::npos);

  // A short one ends at once, and one that ends in time as it would have.
  run(5, shape({1}), {}, now + 9ms);
  tick(9ms);
  CHECK(asked() == 4);
  CHECK(answer(5).status.code() == Code::deadline_exceeded);
  run(6, shape({1}), {}, now + 20ms);
  tick(19ms);
  CHECK(asked() == 5);
  send(done(started(6), 0));
  CHECK(answer(6).status.ok());
  coordinator.explained({{{7, 6}, "for nothing"}}, now, out);
  CHECK(answers() == 6);
}

TEST_CASE_FIXTURE(ExplainedFixture,
                  "what a run waits for gives it no deadline once it has failed or is decided") {
  // On the fast path it is over when it says what became of its number.
  run(0, shape({1}, true), {}, 20ms);
  tick(18ms);
  REQUIRE(asked() == 1);
  coordinator.cancel({7, 0}, cancelled("by its client"), now, out);
  coordinator.explained({{{7, 0}, "for a lane"}}, now, out);
  for (int i = 0; i < 5; ++i) {
    tick(2ms);
    CHECK(coordinator.next_wakeup() > now);
  }
  CHECK(all<Coordinator::AbortAttempt>().size() == 1);
  CHECK(answers() == 0);
  send(PartitionDone::failed(started(0).id, {7, 0}, 0, cancelled("by its client")));
  CHECK(answer(0).status.code() == Code::cancelled);

  // What it changed outside of the job is being applied.
  run(1, shape({1}), {}, now + 20ms);
  tick(18ms);
  REQUIRE(asked() == 2);
  PartitionDone saved = done(started(1), 0);
  saved.writes = {{{TaskId{1}, 0}, 1, true}};
  send(saved);
  stage(1, 1);
  REQUIRE(coordinator.decided() == 1);
  coordinator.explained({{{7, 1}, "for a disk"}}, now, out);
  tick(2ms);
  CHECK(coordinator.next_wakeup() > now);
  stage(1, 1);
  CHECK(answer(1).committed == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run that is committed tells who has not answered") {
  run(0, shape({1}));
  CHECK(coordinator.looks(now)[0].unanswered.empty());
  send(done(started(0), 0, 1));
  CHECK(coordinator.looks(now)[0].unanswered == std::vector<TaskId>{TaskId{1}, TaskId{2}});
  stage(1, 1);
  CHECK(coordinator.looks(now)[0].unanswered == std::vector<TaskId>{TaskId{2}});
  CHECK(coordinator.looks(now)[0].turn == "worker /worker:2 to stage its writes");
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a deadline ends a run, also when its number is not decided yet") {
  run(0, shape({1}), {}, 100ms);
  CHECK(coordinator.next_wakeup() <= 100ms);
  tick(100ms);
  CHECK(answer(0).status.code() == Code::deadline_exceeded);
  CHECK(all<Coordinator::AbortAttempt>().size() == 1);
  run(1, shape({1}), {}, 200ms);
  send(done(started(1), 0, 1));
  stage(1, 1);
  tick(150ms);
  CHECK(answer(1).status.code() == Code::deadline_exceeded);
  CHECK(coordinator.decided() == 0);
  run(2, shape({1}), {}, 400ms);
  send(done(started(2), 0, 1));
  give_back();
  stage(1, 1);
  stage(2, 1);
  tick(150ms);
  CHECK(answer(2).status.ok());  // decided before
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "close cancels the runs of its session and refuses later ones") {
  coordinator.open_session(8);
  run(0, shape({1}));
  coordinator.run({{8, 0}, shape({1}), kNever, {}}, now, out);
  coordinator.close_session(7, now, out);
  CHECK(answer(0).status.code() == Code::cancelled);
  CHECK(answers() == 1);
  CHECK(all<Coordinator::SessionClosed>().size() == 1);
  run(1, shape({1}));
  CHECK(answer(1).status.code() == Code::failed_precondition);
  coordinator.close_session(7, now, out);
  CHECK(all<Coordinator::SessionClosed>().size() == 2);
  CHECK(coordinator.tables().runs == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that was called off does not commit, whatever shards have staged") {
  run(0, shape({1}));
  send(done(started(0), 0, 1));
  const auto first = all<Coordinator::SendPrepare>();
  stage(1, 1);
  coordinator.close_session(7, now, out);
  CHECK(answer(0).status.code() == Code::cancelled);
  CHECK(all<Coordinator::SessionClosed>().size() == 1);
  auto prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 4);  // all shards are told that it is taken back
  for (int i : {2, 3}) {
    CHECK(prepares[std::size_t(i)].prepare.order == StageOrder::withdraw);
    CHECK(prepares[std::size_t(i)].prepare.attempt == first[0].prepare.attempt);
    CHECK(prepares[std::size_t(i)].prepare.round == first[0].prepare.round + 1);
  }
  coordinator.staged({1, TaskId{2}, 1, 0, first[0].prepare.round, {}}, now, out);  // too late
  CHECK(coordinator.decided() == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a number is given again when all shards that had it have given it back") {
  run(0, shape({1}));
  run(1, shape({1}));
  send(done(started(0), 0, 1));
  send(done(started(1), 0, 1));
  coordinator.cancel({7, 0}, cancelled("enough"), now, out);
  CHECK(answer(0).status.code() == Code::cancelled);
  CHECK(coordinator.tables().undecided == 1);
  stage(2, 1);
  out.clear();
  tick(50ms);  // asked again
  auto prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 1);
  CHECK(prepares[0].shard == TaskId{1});
  CHECK(prepares[0].prepare.order == StageOrder::withdraw);
  run(2, shape({1}, true));
  CHECK(all<Coordinator::StartAttempt>()[0].grant == 0);  // nor can it be granted
  stage(1, 1);
  prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 3);
  CHECK(prepares[1].prepare.s == 1);
  CHECK(prepares[1].prepare.run.n == 1);
  CHECK(prepares[1].prepare.order == StageOrder::stage);
  stage(1, 1);
  stage(2, 1);
  CHECK(answer(1).committed == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a shard that cannot stage fails the run, by name, and no other") {
  run(0, shape({1, 2}));
  run(1, shape({1}));
  for (std::uint32_t p : {0, 1}) send(done(started(0), p, 1));
  stage(1, 1);
  stage(2, 1, resource_exhausted("no memory"));
  CHECK(answer(0).status.code() == Code::resource_exhausted);
  CHECK(answer(0).status.text().find("/worker:2") != std::string::npos);
  CHECK(coordinator.decided() == 0);
  give_back();
  commit(1);
  CHECK(answer(1).committed == 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a shard that does not stage in time is lost, with that as the cause") {
  for (bool withdrawn : {false, true}) {
    CoordinatorFixture f;
    f.run(0, shape({1}));
    f.send(f.done(f.started(0), 0, 1));
    if (withdrawn) f.coordinator.cancel({7, 0}, cancelled("enough"), f.now, f.out);
    f.stage(1, 1);
    while (f.coordinator.next_wakeup() < 10s) f.tick(f.coordinator.next_wakeup() - f.now);
    CHECK(f.all<Coordinator::Expel>().empty());
    f.tick(10s - f.now);
    auto expelled = f.all<Coordinator::Expel>();
    REQUIRE(expelled.size() == 1);
    CHECK(expelled[0].task == TaskId{2});
    CHECK(f.all<Coordinator::JobStopped>().size() == 1);
    f.run(1, shape({1}));
    for (const auto& status : {f.answer(1).status, f.all<Coordinator::JobStopped>()[0].status}) {
      CHECK(status.code() == Code::unavailable);
      CHECK(status.text().find("/worker:2") != std::string::npos);
      CHECK(status.text().find("did not stage a commit within 10 s") != std::string::npos);
    }
    CHECK(f.answer(0).status.code() == (withdrawn ? Code::cancelled : Code::unavailable));
  }
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a job that was stopped as a whole while it commits loses no shard") {
  run(0, shape({1}));
  send(done(started(0), 0, 1));
  stage(1, 1);
  for (int stops = 0; stops < 5; ++stops) tick(1h);
  CHECK(all<Coordinator::Expel>().empty());
  stage(2, 1);
  CHECK(answer(0).status.ok());
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a grant is asked back when another run wants a number") {
  run(0, shape({1}, true));
  const auto granted = started(0);
  run(1, shape({2}));
  CHECK(all<Coordinator::RevokeGrant>().empty());
  send(done(started(1), 0, 1));
  auto asked = all<Coordinator::RevokeGrant>();
  REQUIRE(asked.size() == 1);
  CHECK(asked[0].attempt == granted.id);
  CHECK(all<Coordinator::SendPrepare>().empty());
  out.clear();
  tick(50ms);
  CHECK(all<Coordinator::RevokeGrant>().size() == 1);  // no answer: asked again
  coordinator.grant_returned({granted.id, granted.run}, now, out);
  coordinator.grant_returned({granted.id, granted.run}, now, out);
  CHECK(coordinator.counters().revoked == 1);
  stage(1, 1);
  stage(2, 1);
  CHECK(answer(1).committed == 1);
  send(done(granted, 0, 1));
  stage(1, 2);
  stage(2, 2);
  CHECK(answer(0).committed == 2);
  CHECK(coordinator.counters().fast_commits == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a grant that was used before it was asked back counts") {
  run(0, shape({1}, true));
  const auto granted = started(0);
  run(1, shape({2}));
  send(done(started(1), 0, 1));
  auto d = done(granted, 0, 1);
  d.fast_committed = 1;
  send(d);
  CHECK(answer(0).committed == 1);
  coordinator.grant_returned({granted.id, granted.run}, now, out);  // not true, and too late
  stage(1, 2);
  stage(2, 2);
  CHECK(answer(1).committed == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that was overtaken three times has the numbers to itself") {
  run(0, shape({1}));
  PartitionDone slow;
  std::uint64_t n = 1;
  for (int i = 0; i < 3; ++i, ++n) {
    run(n, shape({1}));
    commit(n, {{}, {42}, {}, {}});
    slow = done(started(0), 0, 1);
    slow.uses.reads = {42};
    send(slow);
  }
  CHECK(coordinator.counters().conflicts == 3);
  slow.attempt = started(0).id;
  run(n, shape({1}, true));
  CHECK(all<Coordinator::StartAttempt>().back().grant == 0);
  auto d = done(started(n), 0, 1);
  d.uses.updates = {42};
  out.clear();
  send(d);
  CHECK(all<Coordinator::SendPrepare>().empty());  // it waits, since the other one runs
  send(slow);
  stage(1, 4);
  stage(2, 4);
  CHECK(answer(0).committed == 4);
  stage(1, 5);
  stage(2, 5);
  CHECK(answer(n).committed == 5);
  CHECK(coordinator.counters().conflicts == 3);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that waits for a queue lets others commit, however often overtaken") {
  run(0, shape({1}));
  std::uint64_t n = 1;
  for (int i = 0; i < 3; ++i, ++n) {
    run(n, shape({1}));
    commit(n, {{}, {42}, {}, {}});
    auto d = done(started(0), 0, 1);
    d.uses.reads = {42};
    send(d);
  }
  run(n, shape({1}));
  send(done(started(n), 0, 1));
  const auto prepares = all<Coordinator::SendPrepare>().size();
  coordinator.blocked({1, TaskId{1}, 1, {started(0).id}, {}}, now, out);
  CHECK(all<Coordinator::SendPrepare>().size() == prepares + 2);
}

namespace {

// So many runs wait, and one commits. How much later the shards are told of the commit.
Instant told_after(std::uint64_t waiting) {
  Coordinator::Options options;
  options.max_active = 1000;
  CoordinatorFixture c(options);
  BlockedReport report{1, TaskId{1}, 1, {}, {}};
  for (std::uint64_t n = 0; n < waiting; ++n) {
    c.run(n, CoordinatorFixture::shape({1}));
    report.waiting.push_back(c.started(n).id);
  }
  c.coordinator.blocked(report, c.now, c.out);
  c.run(waiting, CoordinatorFixture::shape({1}));
  c.tick(1s);  // lists that are due for another reason
  c.coordinator.blocked({1, TaskId{1}, 2, report.waiting, {}}, c.now, c.out);
  c.out.clear();
  c.run(waiting + 1, CoordinatorFixture::shape({1}));
  c.commit(waiting + 1);
  REQUIRE(c.answer(waiting + 1).committed == 1);
  const Instant then = c.now;
  const auto told = [&] {
    const auto lists = c.all<Coordinator::SendLive>();
    return !lists.empty() && lists.back().list.decided == 1;
  };
  while (!told()) {
    REQUIRE(c.coordinator.next_wakeup() < kNever);
    c.tick(c.coordinator.next_wakeup() - c.now);
  }
  return c.now - then;
}

}  // namespace

TEST_CASE("who waits is told of each commit at once; many who wait, of several at a time") {
  CHECK(told_after(0) == 10ms);
  CHECK(told_after(1) == 0ms);
  CHECK(told_after(50) == 0ms);
  CHECK(told_after(200) == 201us);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a lost worker without state fails its runs only") {
  run(0, shape({1, 3}));
  run(1, shape({1, 2}));
  coordinator.task_lost(TaskId{3}, unavailable("silent for 2000 ms"), now, out);
  CHECK(answer(0).status.code() == Code::unavailable);
  const std::string text = answer(0).status.text();
  CHECK(text.find("/worker:3 is lost: silent for 2000 ms, in step 0 of session 7") !=
        std::string::npos);
  CHECK(text.find("/worker:3/cpu:0") != std::string::npos);
  CHECK(answers() == 1);
  run(2, shape({3}));
  CHECK(answer(2).status.code() == Code::unavailable);
}

TEST_CASE_FIXTURE(
    CoordinatorFixture,
    "a lost worker with state stops the job with its name, the cause, device and step") {
  run(4, shape({1, 2}));
  coordinator.task_lost(TaskId{2}, unavailable("silent for 2000 ms"), now, out);
  REQUIRE(all<Coordinator::JobStopped>().size() == 1);
  CHECK(answer(4).status.code() == Code::unavailable);
  const std::string text = answer(4).status.text();
  for (const char* part : {"/worker:2 is lost: silent for 2000 ms", "step 4", "/worker:2/cpu:0"})
    CHECK(text.find(part) != std::string::npos);
  run(5, shape({1}));
  CHECK(answer(5).status.code() == Code::unavailable);
  CHECK(answer(5).status.text().find("silent for 2000 ms") != std::string::npos);
}

TEST_CASE("computing runs are bounded, waiting ones give their place back") {
  Coordinator::Options options;
  options.max_active = 1;
  CoordinatorFixture f;
  Coordinator c(options);
  c.add_task(TaskId{1}, "/worker:1", true);
  c.open_session(7);
  Coordinator::Outputs out;
  c.run({{7, 0}, CoordinatorFixture::shape({1}), kNever, {}}, 0ms, out);
  c.run({{7, 1}, CoordinatorFixture::shape({1}), kNever, {}}, 0ms, out);
  auto starts = [&] {
    std::size_t n = 0;
    for (auto& o : out) n += std::holds_alternative<Coordinator::StartAttempt>(o);
    return n;
  };
  CHECK(starts() == 1);
  c.blocked({1, TaskId{1}, 1, {{1, 1}}, {}}, 1ms, out);
  CHECK(starts() == 2);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "runs that wait for each other are withdrawn, all but the oldest") {
  for (std::uint64_t n : {0, 1, 2}) run(n, shape({1}));
  // Runs 0 and 1 hold elements; all three wait.
  for (int i = 1; i <= 17; ++i) {
    coordinator.blocked(
        {1, TaskId{1}, std::uint64_t(i), {{1, 1}, {1, 2}, {1, 3}}, {{7, 0}, {7, 1}}}, now, out);
    tick(50ms);
  }
  CHECK(coordinator.counters().withdrawn == 2);
  auto aborts = all<Coordinator::AbortAttempt>();
  REQUIRE(aborts.size() == 2);
  CHECK(aborts[0].run.n == 1);
  CHECK(aborts[1].run.n == 2);
  commit(0);
  CHECK(started(1).id.a == 4);  // one by one
  CHECK(started(2).id.a == 3);
  commit(1);
  CHECK(started(2).id.a == 5);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "the idle commit follows a decision within ten milliseconds") {
  run(0, shape({1}));
  commit(0);
  CHECK(coordinator.next_wakeup() == now + 10ms);
  out.clear();
  tick(10ms);
  auto lists = all<Coordinator::SendLive>();
  REQUIRE(lists.size() == 4);
  CHECK(lists[0].list.decided == 1);
  CHECK(lists[0].list.min_live == 1);
  CHECK(lists[0].list.live.empty());
  // Repeated for those who missed it, but not for ever.
  int sent = 0;
  while (coordinator.next_wakeup() != kNever && sent < 20) {
    tick(coordinator.next_wakeup() - now);
    ++sent;
  }
  CHECK(sent == 6);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "what is not answered is sent again, ever later") {
  run(0, shape({1, 2}));
  auto a = started(0);
  send(done(a, 0, 1));
  out.clear();
  tick(50ms);
  auto starts = all<Coordinator::StartAttempt>();
  REQUIRE(starts.size() == 1);
  CHECK(starts[0].partition == 1);
  CHECK(coordinator.next_wakeup() == now + 100ms);
  send(done(a, 1, 1));
  stage(1, 1);
  out.clear();
  tick(50ms);
  auto prepares = all<Coordinator::SendPrepare>();
  REQUIRE(prepares.size() == 1);
  CHECK(prepares[0].shard == TaskId{2});
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "concurrent writing runs of one snapshot draw different numbers") {
  for (std::uint64_t n : {0, 1, 2}) run(n, shape({1}));
  auto starts = all<Coordinator::StartAttempt>();
  for (std::uint64_t i = 0; i < 3; ++i) CHECK(starts[i].random_index == i);
  auto reader = shape({1});
  reader->may_write = false;
  run(3, reader);
  CHECK(all<Coordinator::StartAttempt>().back().random_index == std::uint64_t{1} << 32);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "what runs without a commit draw counts from the last commit on") {
  auto reader = shape({1});
  reader->may_write = false;
  auto draws = shape({1});
  draws->may_write = false;
  draws->draws = true;
  std::uint64_t n = 0;
  auto drawn = [&](std::shared_ptr<StepShape> step) {
    run(n, std::move(step));
    const auto index = all<Coordinator::StartAttempt>().back().random_index;
    send(done(started(n++), 0));
    return index - (std::uint64_t{1} << 32);
  };
  CHECK(drawn(draws) == 0);
  CHECK(drawn(reader) == 0);  // which draws nothing
  CHECK(drawn(draws) == 1);
  run(n, shape({1}));
  commit(n++);
  CHECK(drawn(draws) == 0);  // of another snapshot
  // A client that goes on from that commit draws the same, whatever it has run before.
  coordinator.open_session(8);
  coordinator.run({{8, 40}, draws, kNever, {}}, now, out);
  CHECK(all<Coordinator::StartAttempt>().back().random_index == std::uint64_t{1} << 32);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run that drew and might have written takes a number") {
  auto draws = shape({1});
  draws->draws = true;
  run(0, draws);
  send(done(started(0), 0));
  CHECK(all<Coordinator::SendPrepare>().empty());  // it wrote nowhere
  CHECK(answer(0).committed == 1);
  run(1, draws);
  CHECK(started(1).snapshot == 1);  // which is what it draws by
  draws->may_write = false;
  run(2, draws);
  send(done(started(2), 0));
  CHECK(answer(2).committed == 0);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run keeps its elements of a dataset when it is done again") {
  auto reader = [&](std::vector<std::uint32_t> tasks) {
    auto s = shape(std::move(tasks));
    s->datasets = {{{"", "data"}, 2}, {{"", "more"}, 1}};
    s->partitions.back().datasets = {1, 0};
    return s;
  };
  run(0, reader({1, 2}));
  run(1, shape({1}));
  auto starts = all<Coordinator::StartAttempt>();
  CHECK(starts[0].elements.empty());
  CHECK(starts[1].elements == DatasetPlaces::Elements{{0}, {0, 1}});
  CHECK(starts[2].elements.empty());
  // Run 1 overwrites what run 0 has read.
  Uses writes, reads;
  writes.updates = reads.reads = {5};
  commit(1, writes);
  auto conflicting = done(started(0), 0, 1);
  conflicting.uses = reads;
  send(done(started(0), 1));
  out.clear();
  send(conflicting);
  starts = all<Coordinator::StartAttempt>();
  REQUIRE(starts.size() == 2);
  CHECK(starts[1].elements == DatasetPlaces::Elements{{0}, {0, 1}});
  send(done(started(0), 1));
  coordinator.cancel({7, 0}, cancelled("by its client"), now, out);
  CHECK(answer(0).status.code() == Code::cancelled);
  run(2, reader({1}));
  CHECK(all<Coordinator::StartAttempt>().back().elements == DatasetPlaces::Elements{{0}, {0, 1}});
  send(done(started(2), 0));
  run(3, reader({1}));
  CHECK(all<Coordinator::StartAttempt>().back().elements == DatasetPlaces::Elements{{1}, {2, 3}});
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that asks is told where the job stands, or stood at its note") {
  const std::vector<DatasetPlace> before{{{"", "data"}, 3, {1}}}, after{{{"", "data"}, 3, {}}};
  for (const bool notes : {false, true}) {
    CoordinatorFixture f;
    auto reader = shape({1});
    reader->datasets = {{{"", "data"}, 1}};
    f.resume(9, {5, before, notes ? "at 5" : ""});
    CHECK(f.answer(9).committed == 5);
    CHECK(f.coordinator.ask_place(7).datasets == before);
    f.run(0, reader);
    f.coordinator.run({{7, 1}, shape({2}), kNever, {}, true}, f.now, f.out);
    f.send(f.done(f.started(0), 0));  // takes element 1, after run 1 has started
    f.send(f.done(f.started(1), 0));
    CHECK(f.answer(0).place == nullptr);  // it did not ask
    CHECK(f.answer(1).place->committed == 5);
    CHECK(f.answer(1).place->datasets == before);
    f.coordinator.run({{7, 2}, shape({2}), kNever, {}, true}, f.now, f.out);
    f.send(f.done(f.started(2), 0));
    CHECK(f.answer(2).place->datasets == (notes ? before : after));
    f.run(3, shape({1}));
    f.commit(3);
    CHECK(f.coordinator.ask_place(7).committed == 6);
    CHECK(f.coordinator.ask_place(7).datasets == after);
    CHECK(f.coordinator.rewind_datasets(*reader).ok());
    CHECK(f.coordinator.ask_place(7).datasets == (notes ? after : std::vector<DatasetPlace>{}));
    f.run(4, shape({1}));
    f.commit(4);
    CHECK(f.coordinator.ask_place(7).datasets.empty());
  }
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run with a note commits, and the last note stays") {
  auto reader = shape({1});
  reader->may_write = false;
  auto noted = [&](std::uint64_t n, std::shared_ptr<StepShape> step, std::string note) {
    coordinator.run({{7, n},
                     std::move(step),
                     kNever,
                     {},
                     false,
                     std::make_shared<const std::string>(std::move(note))},
                    now, out);
  };
  noted(0, reader, "one");
  CHECK(coordinator.ask_place(7).note.empty());
  send(done(started(0), 0));
  CHECK(answer(0).committed == 1);
  CHECK(coordinator.ask_place(7).note == "one");
  CHECK(coordinator.ask_place(7).fetches.size() == 1);
  noted(1, shape({1}), "two");
  coordinator.cancel({7, 1}, cancelled("by its client"), now, out);
  run(2, shape({1}));
  commit(2);
  CHECK(coordinator.ask_place(7).note == "one");
  noted(3, shape({1}), "");
  commit(3);
  CHECK(coordinator.ask_place(7).note.empty());
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a place moves on without a commit, with what was read and drawn since") {
  auto looks = shape({1});
  looks->may_write = false;
  looks->draws = true;
  looks->datasets = {{{"", "data"}, 1}};
  looks->partitions.back().datasets = {0};
  run(0, shape({1}));
  commit(0);
  CHECK(coordinator.mark_place(7, "begun").ok());
  for (std::uint64_t n : {1, 2}) {
    run(n, looks);
    send(done(started(n), 0));
  }
  CHECK(coordinator.ask_place(7).datasets.empty());
  CHECK(coordinator.ask_place(7).draws == 0);
  CHECK(coordinator.mark_place(7, "looked twice").ok());
  const JobPlace place = coordinator.ask_place(7);
  CHECK(place.committed == 1);
  CHECK(place.note == "looked twice");
  CHECK(place.datasets == std::vector<DatasetPlace>{{{"", "data"}, 2, {}}});
  CHECK(place.draws == 2);
  run(3, shape({1}));
  commit(3);
  CHECK(coordinator.ask_place(7).draws == 0);

  CoordinatorFixture later;
  later.resume(0, place);
  CHECK(later.coordinator.mark_place(7, "too early").code() == Code::failed_precondition);
  CHECK(later.coordinator.ask_place(7).draws == 2);
  later.run(1, looks);
  const auto start = later.all<Coordinator::StartAttempt>().back();
  CHECK(start.random_index == (std::uint64_t{1} << 32) + 2);
  CHECK(start.elements == DatasetPlaces::Elements{{2}});
}

TEST_CASE_FIXTURE(CoordinatorFixture, "small fetches stay with their commit, large ones do not") {
  auto fetch = [&](std::uint64_t n, Tensor value) {
    run(n, shape({1}));
    auto d = done(started(n), 0, 1);
    d.fetches = {{0, std::move(value)}};
    send(d);
    for (std::uint32_t shard : {1, 2}) stage(shard, n + 1);
  };
  auto held = [&] { return coordinator.ask_place(7).fetches; };
  auto zeros = [](std::int64_t n) { return value_or_throw(Tensor::zeros(DType::f32, Shape{n})); };
  fetch(0, zeros(1024));
  REQUIRE(held().size() == 1);
  CHECK(held()[0].shape() == Shape{1024});
  fetch(1, zeros(1025));
  CHECK(held().empty());
  fetch(2, Tensor::scalar(std::string_view(std::string(4000, 'x'))));
  CHECK(held().size() == 1);
  fetch(3, Tensor::scalar(std::string_view(std::string(4096, 'x'))));
  CHECK(held().empty());
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a program that came back asks where the job is before it writes") {
  auto reader = shape({1});
  reader->may_write = false;
  const JobPlace place{3, {}, "at 3", {"init"}, {Tensor::scalar(1.f)}};
  resume(0, place);
  run(1, reader);
  send(done(started(1), 0));
  CHECK(answer(1).status.ok());
  run(2, shape({1}));
  CHECK(answer(2).status.code() == Code::failed_precondition);
  CHECK(answer(2).status.message().find("Session::place()") != std::string::npos);
  coordinator.run({{7, 3}, reader, kNever, {}, false, std::make_shared<const std::string>("x")},
                  now, out);
  CHECK(answer(3).status.code() == Code::failed_precondition);
  const JobPlace told = coordinator.ask_place(7);
  CHECK(told.committed == 3);
  CHECK(told.note == "at 3");
  CHECK(told.once == std::set<std::string>{"init"});
  REQUIRE(told.fetches.size() == 1);
  CHECK(told.fetches[0].item<float>() == 1);
  run(4, shape({1}));
  commit(4);
  CHECK(answer(4).committed == 4);
  coordinator.done_once(7, "more");
  CHECK(coordinator.ask_place(7).once == std::set<std::string>{"init", "more"});
  CHECK(coordinator.ask_place(7).committed == 4);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a job that was not restored is as it was, and may be restored again") {
  const JobPlace place{5, {{{"", "data"}, 3, {1}}}, "at 5", {"init"}, {Tensor::scalar(1.f)}, 2};
  auto untouched = [&] {
    const JobPlace here = coordinator.ask_place(7);
    CHECK(here.committed == 0);
    CHECK(here.datasets.empty());
    CHECK(here.note.empty());
    CHECK(here.once.empty());
    CHECK(here.fetches.empty());
    CHECK(here.draws == 0);
    CHECK(coordinator.knows_place().ok());
  };
  // One fails, one cannot be staged, one is cancelled when it has the number.
  run_resume(0, place, shape({1}, true));
  CHECK(all<Coordinator::StartAttempt>().back().grant == 5);
  auto failed = done(started(0), 0);
  failed.status = invalid_argument("it does not fit");
  send(failed);
  CHECK(answer(0).status.code() == Code::invalid_argument);
  untouched();
  run_resume(1, place, shape({1}));
  send(done(started(1), 0, 1));
  stage(1, 5, resource_exhausted("no memory"));
  CHECK(answer(1).status.code() == Code::resource_exhausted);
  untouched();
  for (std::uint32_t shard : {1, 2}) stage(shard, 5);  // dropped it
  run_resume(2, place, shape({1}));
  run(3, shape({2}));  // waits for what becomes of the job
  send(done(started(2), 0, 1));
  CHECK(all<Coordinator::StartAttempt>().back().attempt.run.n == 2);
  coordinator.cancel({7, 2}, cancelled("by its client"), now, out);
  untouched();
  for (std::uint32_t shard : {1, 2}) stage(shard, 5);
  commit(3);
  CHECK(answer(3).committed == 1);
  run_resume(4, place, shape({1}));
  CHECK(answer(4).status.code() == Code::failed_precondition);
  CHECK(coordinator.ask_place(7).committed == 1);

  CoordinatorFixture other;
  other.run_resume(0, place, shape({1}));
  other.send(failed = other.done(other.started(0), 0));
  other.coordinator.cancel({7, 0}, cancelled("by its client"), now, other.out);
  other.resume(1, place);
  CHECK(other.coordinator.knows_place().code() == Code::failed_precondition);
  CHECK(other.coordinator.ask_place(7).note == "at 5");
  CHECK(other.coordinator.ask_place(7).draws == 2);
  other.run(2, shape({1}));
  CHECK(other.started(2).snapshot == 5);
}

TEST_CASE_FIXTURE(CoordinatorFixture, "what was done once is done with what it read and drew") {
  auto looks = shape({1});
  looks->may_write = false;
  looks->draws = true;
  looks->datasets = {{{"", "data"}, 1}};
  looks->partitions.back().datasets = {0};
  coordinator.run({{7, 0}, shape({1}), kNever, {}, false, std::make_shared<const std::string>("x")},
                  now, out);
  commit(0);
  run(1, looks);
  send(done(started(1), 0));
  CHECK(coordinator.ask_place(7).datasets.empty());
  coordinator.done_once(7, "looked");
  const JobPlace place = coordinator.ask_place(7);
  CHECK(place.note == "x");
  CHECK(place.datasets == std::vector<DatasetPlace>{{{"", "data"}, 1, {}}});
  CHECK(place.draws == 1);
  CHECK(place.once.contains("looked"));
}

TEST_CASE_FIXTURE(CoordinatorFixture, "a run that is dropped has used what it drew") {
  auto draws = shape({1});
  draws->draws = true;
  auto looks = shape({1});
  looks->may_write = false;
  looks->draws = true;
  constexpr std::uint64_t kReadOnly = std::uint64_t{1} << 32;
  auto index = [&](CoordinatorFixture& f) {
    return f.all<Coordinator::StartAttempt>().back().random_index;
  };
  auto drop = [&](CoordinatorFixture& f, std::uint64_t n) {
    RunRequest request{{7, n}, draws};
    request.on_nan = OnNan::drop;
    f.coordinator.run(request, f.now, f.out);
    const std::uint64_t drawn = index(f);
    auto nan = f.done(f.started(n), 0, 1);
    nan.fetches = {{0, Tensor::scalar(std::nanf(""))}};
    f.send(nan);
    CHECK(f.answer(n).status.ok());
    CHECK(f.answer(n).committed == 0);
    return drawn;
  };
  coordinator.run({{7, 0}, draws, kNever, {}, false, std::make_shared<const std::string>("x")}, now,
                  out);
  commit(0);
  for (std::uint64_t n : {1, 2, 3}) CHECK(drop(*this, n) == n - 1);
  run(4, looks);
  CHECK(index(*this) == kReadOnly);
  send(done(started(4), 0));
  // A program that goes on from the note does the same again; from here, what comes next.
  CHECK(coordinator.ask_place(7).draws == 0);
  CHECK(coordinator.mark_place(7, "three dropped").ok());
  const JobPlace place = coordinator.ask_place(7);
  CoordinatorFixture later;
  later.resume(0, place);
  later.coordinator.ask_place(7);
  for (CoordinatorFixture* f : {static_cast<CoordinatorFixture*>(this), &later}) {
    f->run(5, looks);
    CHECK(index(*f) == kReadOnly + 1);
    f->send(f->done(f->started(5), 0));
    CHECK(drop(*f, 6) == 3);
    f->run(7, draws);
    CHECK(index(*f) == 4);
    f->run(8, draws);  // beside it
    CHECK(index(*f) == 5);
    f->commit(7);
    CHECK(f->coordinator.ask_place(7).draws < kReadOnly);
  }
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a granted run that a worker says waits for a queue keeps its number") {
  run(0, shape({1}, true));
  run(1, shape({2}));
  const AttemptInfo granted = started(0), other = started(1);
  for (std::uint64_t sequence = 1; sequence <= 12; ++sequence) {
    coordinator.blocked({1, TaskId{1}, sequence, {granted.id, other.id}, {{7, 0}, {7, 1}}}, now,
                        out);
    tick(100ms);
  }
  CHECK(coordinator.counters().withdrawn == 0);
  auto d = done(granted, 0);
  d.fast_committed = 1;
  send(d);
  CHECK(answer(0).committed == 1);
  CHECK(coordinator.decided() == 1);
}

// ------------------------------------------------------------------ what is seen outside of the
// job

namespace {

// A run whose partition at task 1 has saved something there, up to its staging by both shards.
struct Outside : CoordinatorFixture {
  Outside() {
    run(0, shape({1, 2}), {}, now + 1h);
    auto d = done(started(0), 0);
    d.writes = {{{TaskId{1}, 0}, 2, false}, {{TaskId{1}, 3}, 1, true}};
    send(d);
    send(done(started(0), 1, 1));
    stage(1, 1);
    stage(2, 1);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Outside, "a run is answered once what it changes outside is applied") {
  CHECK(coordinator.decided() == 1);
  CHECK(answers() == 0);
  const auto told = all<Coordinator::SendPrepare>().back();
  CHECK(told.shard == TaskId{1});
  CHECK(told.prepare.order == StageOrder::apply);
  CHECK(told.prepare.s == 1);
  REQUIRE(told.prepare.resources.size() == 1);
  CHECK(told.prepare.resources[0].resource == ResourceId{TaskId{1}, 3});
  stage(2, 1);  // nobody asked it
  CHECK(answers() == 0);
  stage(1, 1);
  CHECK(answer(0).status.ok());
  CHECK(answer(0).committed == 1);
  CHECK(answer(0).fetches.size() == 2);
  CHECK(coordinator.tables().undecided == 0);
}

TEST_CASE_FIXTURE(Outside,
                  "what is being applied is too late to be called off, and asked for again") {
  coordinator.cancel({7, 0}, cancelled("enough"), now, out);
  out.clear();
  tick(2h);  // past its deadline
  CHECK(answers() == 0);
  REQUIRE(all<Coordinator::SendPrepare>().size() == 1);
  CHECK(all<Coordinator::SendPrepare>()[0].prepare.order == StageOrder::apply);
  CHECK(coordinator.next_wakeup() > now);
  stage(1, 1);
  CHECK(answer(0).status.ok());
}

TEST_CASE_FIXTURE(Outside, "a number is given only when the one before it is applied") {
  run(1, shape({2}));
  send(done(started(1), 0, 1));
  CHECK(all<Coordinator::SendPrepare>().back().prepare.order == StageOrder::apply);
  stage(1, 1);
  CHECK(all<Coordinator::SendPrepare>().back().prepare.order == StageOrder::stage);
  stage(1, 2);
  stage(2, 2);
  CHECK(answer(1).committed == 2);
}

TEST_CASE_FIXTURE(Outside, "what cannot be applied outside is told beside the number") {
  stage(1, 1, resource_exhausted("the disk is full"));
  CHECK(answer(0).status.code() == Code::resource_exhausted);
  CHECK(answer(0).status.text().find("after commit 1") != std::string::npos);
  CHECK(answer(0).committed == 1);
  run(1, shape({1}));  // the job goes on
  commit(1);
  CHECK(answer(1).committed == 2);
}

TEST_CASE_FIXTURE(Outside, "a shard that does not apply in time is lost") {
  for (int second = 0; second < 115; ++second) tick(1s);
  CHECK(all<Coordinator::Expel>().empty());  // disks may be slow
  for (int second = 0; second < 10; ++second) tick(1s);
  auto expelled = all<Coordinator::Expel>();
  REQUIRE(expelled.size() == 1);
  CHECK(expelled[0].task == TaskId{1});
  CHECK(answer(0).status.code() == Code::unavailable);
  CHECK(answer(0).committed == 1);  // it was decided
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run waits while loops of another one take elements of its dataset") {
  auto reader = [&](bool open) {
    auto s = shape({1});
    s->datasets = {{{"", "data"}, 1, open}};
    s->partitions.back().datasets = {0};
    return s;
  };
  run(0, reader(true));
  run(1, reader(false));
  run(2, reader(true));
  run(3, shape({2}));
  const auto starts = [&] { return all<Coordinator::StartAttempt>(); };
  REQUIRE(starts().size() == 2);
  CHECK(starts()[0].elements == DatasetPlaces::Elements{{0}});
  CHECK(starts()[1].attempt.run == RunId{7, 3});
  CHECK(coordinator.text().find("waits for the run whose loops") != std::string::npos);
  auto d = done(started(0), 0);
  d.elements = {3};
  out.clear();
  send(d);
  REQUIRE(starts().size() == 2);
  CHECK(starts()[0].attempt.run == RunId{7, 1});
  CHECK(starts()[0].elements == DatasetPlaces::Elements{{3}});
  CHECK(starts()[1].attempt.run == RunId{7, 2});
  CHECK(starts()[1].elements == DatasetPlaces::Elements{{4}});
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "a run that sees what is committed when it asks is done again if overtaken") {
  auto saving = shape({1});
  saving->may_write = false;
  saving->current = true;
  Uses saw;
  saw.reads = {5};
  Uses changed;
  changed.updates = {5};
  run(0, saving);
  run(1, shape({1}));
  commit(1, changed);
  for (std::uint64_t n = 2; n < 5; ++n) {  // as often as others overtake it
    auto d = done(started(0), 0);
    d.uses = saw;
    const std::size_t before = answers();
    run(n, shape({1}));
    send(d);
    CHECK(answers() == before);
    CHECK(coordinator.counters().conflicts == n - 1);
    if (n == 4) break;
    commit(n, changed);
  }
  // Now the numbers are its own: the other run waits, although this one takes none.
  auto other = done(started(4), 0, 1);
  other.uses = changed;
  send(other);
  const CommitNumber decided = coordinator.decided();
  CHECK(started(0).snapshot == decided);
  auto d = done(started(0), 0);
  d.uses = saw;
  send(d);
  CHECK(answer(0).status.ok());
  CHECK(answer(0).committed == 0);
  stage(1, decided + 1);
  stage(2, decided + 1);
  CHECK(answer(4).committed == decided + 1);
}

TEST_CASE_FIXTURE(CoordinatorFixture,
                  "one that nobody overtakes is answered at once, and takes no number") {
  auto saving = shape({1});
  saving->may_write = false;
  saving->current = true;
  run(0, shape({1}));
  commit(0, {{}, {6}, {}, {}});
  run(1, saving);
  auto d = done(started(1), 0);
  d.uses.reads = {5, 6};
  send(d);
  CHECK(answer(1).status.ok());
  CHECK(coordinator.decided() == 1);
}
