#include "actors/client/run_log.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using test::contains;

namespace {

// Without a commit: of a run that moved the place of a dataset.
CallResult result_of(CommitNumber committed, Status status = {}) {
  CallResult result;
  result.moved = committed == 0 && status.ok();
  result.committed = committed;
  result.status = std::move(status);
  return result;
}

// What would be done again: the runs by name.
struct Notebook {
  RunLog log;
  std::vector<int> again;

  Notebook() { log.kept(); }
  RunLog::Again run(int name) {
    return [this, name] {
      again.push_back(name);
      return RunLog::Outcome{};
    };
  }
  // A run that is over.
  void done(int name, CommitNumber committed, const Status& status = {}) {
    log.answered(log.enter({}, 8, run(name)), result_of(committed, status));
  }
  std::vector<int> repeat() {
    again.clear();
    const auto all = log.done();
    REQUIRE_MESSAGE(all.ok(), all.status().text());
    for (const auto& each : *all) (void)each.again();
    return again;
  }
  std::string broken() { return log.done().status().text(); }
};

}  // namespace

TEST_CASE("runs since a state are done again in order, and what failed is to fail again") {
  Notebook n;
  n.done(1, 1);
  n.done(2, 0);
  n.done(3, 0, out_of_range("the dataset has ended"));
  n.done(4, 2);
  n.done(5, 0, unavailable("lost"));
  n.log.enter_done(n.run(6), 0, 2);
  CHECK(n.repeat() == std::vector<int>{1, 2, 3, 4, 6});
  CHECK(n.repeat() == std::vector<int>{1, 2, 3, 4, 6});  // as often as it takes
  const auto all = n.log.done();
  CHECK((*all)[2].outcome == RunLog::Outcome{Code::out_of_range, 0, 0});
  CHECK((*all)[3].outcome.committed == 2);
  REQUIRE(n.log.quiet());
  n.log.kept();
  CHECK(n.repeat().empty());
}

TEST_CASE("runs that only read are not done again, however many") {
  Notebook n;
  n.done(1, 1);
  CallResult read;
  read.snapshot = 1;
  for (std::size_t i = 0; i < 2 * RunLog::kMostEntries; ++i)
    n.log.answered(n.log.enter({}, 1 << 20, n.run(2)), read);
  CHECK(n.repeat() == std::vector<int>{1});
  n.log.answered(n.log.enter({}, RunLog::kMostBytes / 2, n.run(3)), result_of(2));
  CHECK(n.repeat() == std::vector<int>{1, 3});
}

TEST_CASE("an immediate run whose values others had changed cannot be done again") {
  Notebook n;
  CallResult result = result_of(1);
  n.log.answered(n.log.enter({}, 8, n.run(1)), result);
  CHECK(n.repeat() == std::vector<int>{1});
  result.committed = 3;
  result.behind = 1;
  n.log.answered(n.log.enter({}, 8, n.run(2)), result);
  CHECK(contains(n.broken(), "updates of values that others had changed"));
  n.log.kept();
  n.done(3, 4);
  CHECK(n.repeat() == std::vector<int>{3});
}

TEST_CASE("small fetches are compared") {
  CallResult a = result_of(1), b = result_of(1);
  a.fetches = {Tensor::scalar(1.f)};
  b.fetches = {Tensor::scalar(2.f)};
  CHECK(RunLog::outcome_of(a) == RunLog::outcome_of(a));
  CHECK_FALSE(RunLog::outcome_of(a) == RunLog::outcome_of(b));
}

TEST_CASE(
    "no state is kept while a run is under way, whether its client asked for its answer or not") {
  Notebook n;
  const auto call = std::make_shared<Call>();
  const std::uint64_t open = n.log.enter(call, 0, n.run(1));
  CHECK_FALSE(n.log.quiet());
  call->finish(result_of(7));
  CHECK(n.log.quiet());
  CHECK(n.repeat() == std::vector<int>{1});
  n.log.kept();
  n.log.answered(open, result_of(7));  // its client asks at last
  CHECK(n.repeat().empty());
  // So it is for a run that began before anything was kept.
  RunLog fresh;
  const std::uint64_t early = fresh.enter({}, 0, n.run(1));
  CHECK_FALSE(fresh.quiet());
  CHECK(contains(fresh.done().status().text(), "its state was not kept"));
  fresh.answered(early, result_of(1));
  CHECK(fresh.quiet());
}

TEST_CASE("a state is kept after runs that are over, though one of them broke the log") {
  Notebook n;
  n.log.set_order_matters(false);
  n.done(1, 1);
  const auto late = std::make_shared<Call>(), other = std::make_shared<Call>();
  (void)n.log.enter(late, 0, n.run(2));
  (void)n.log.enter(other, 0, n.run(3));
  late->finish(result_of(0, deadline_exceeded("late")));
  other->finish(result_of(2));
  CHECK(n.log.quiet());
  CHECK(contains(n.broken(), "deadline_exceeded"));
}

TEST_CASE("commits of several clients are done again in the order of their numbers") {
  Notebook n;
  n.log.set_order_matters(false);
  const std::uint64_t a = n.log.enter({}, 0, n.run(1)), b = n.log.enter({}, 0, n.run(2));
  n.done(10, 0);
  n.log.answered(a, result_of(2));
  n.log.answered(b, result_of(1));
  n.done(3, 3);
  CHECK(n.repeat() == std::vector<int>{2, 1, 10, 3});
}

TEST_CASE("runs at once break a log where it matters which was first") {
  Notebook n;
  n.done(1, 1);
  const std::uint64_t a = n.log.enter({}, 0, n.run(2)), b = n.log.enter({}, 0, n.run(3));
  CHECK(contains(n.broken(), "several runs were under way at once"));
  n.log.answered(a, result_of(2));
  CHECK_FALSE(n.log.quiet());
  n.log.answered(b, result_of(3));
  REQUIRE(n.log.quiet());
  n.log.kept();
  n.done(4, 4);
  CHECK(n.repeat() == std::vector<int>{4});
}

TEST_CASE("runs at once that take elements break a log, also where no other order matters") {
  Notebook n;
  n.log.set_order_matters(false);
  const auto enter = [&](int name, bool takes) { return n.log.enter({}, 0, n.run(name), takes); };
  const std::uint64_t a = enter(1, true), fills = enter(2, false);
  n.log.answered(fills, result_of(1));
  n.log.answered(a, result_of(2));
  const std::uint64_t b = enter(3, true);
  n.log.answered(b, result_of(3));
  CHECK(n.repeat() == std::vector<int>{2, 1, 3});
  // The second one may take the younger element and commit first.
  const std::uint64_t c = enter(4, true), d = enter(5, true);
  CHECK(contains(n.broken(), "several runs that dequeue were under way at once"));
  n.log.answered(d, result_of(4));
  n.log.answered(c, result_of(5));
  n.log.kept();
  n.log.answered(enter(6, true), result_of(6));
  CHECK(n.repeat() == std::vector<int>{6});
}

TEST_CASE("a run that failed is done again after the commit that it failed from") {
  Notebook n;
  n.log.set_order_matters(false);
  const std::uint64_t waits = n.log.enter({}, 0, n.run(1), true);
  n.done(2, 6);
  n.done(3, 7);  // closes the queue
  n.done(4, 8);
  CallResult closed = result_of(0, out_of_range("the queue is closed"));
  closed.seen = 7;
  n.log.answered(waits, closed);
  CHECK(n.repeat() == std::vector<int>{2, 3, 1, 4});
}

TEST_CASE("what has no commit is done again after the commit that it saw") {
  Notebook n;
  n.log.set_order_matters(false);
  const std::uint64_t reads = n.log.enter({}, 0, n.run(1));
  const std::uint64_t early = n.log.enter({}, 0, n.run(2));
  n.done(3, 6);
  n.log.enter_done(n.run(4), 0, 6);  // a rewind, which its client wrote down before commit 5
  CallResult answer = result_of(0);
  answer.snapshot = 6;
  n.log.answered(reads, answer);
  n.log.answered(early, result_of(5));
  n.done(5, 7);
  CHECK(n.repeat() == std::vector<int>{2, 3, 1, 4, 5});
}

TEST_CASE("a run that was cut short, too many runs, and a reset break a log until the next state") {
  for (const Status& status :
       {deadline_exceeded("x"), cancelled("x"), aborted("a reset"), resource_exhausted("x")}) {
    Notebook n;
    n.done(1, 1);
    n.done(2, 0, status);
    CHECK(contains(n.broken(), std::string(code_name(status.code()))));
    n.done(3, 2);
    CHECK_FALSE(n.log.whole().ok());
    n.log.kept();
    CHECK(n.log.whole().ok());
  }
  Notebook n;
  (void)n.log.enter({}, RunLog::kMostBytes, n.run(4));
  CHECK(contains(n.log.whole().text(), "0 runs"));
  Notebook reset;
  reset.log.broke("containers were reset");
  CHECK(contains(reset.broken(), "containers were reset"));
}

TEST_CASE("a state that takes long to be kept keeps what was run since it was taken") {
  Notebook n;
  n.done(1, 1);
  REQUIRE(n.log.quiet());
  n.log.taken();
  n.done(2, 2);
  CHECK(n.repeat() == std::vector<int>{1, 2});  // until then it goes back to the one before
  CHECK(n.log.taken_is_kept());
  CHECK(n.repeat() == std::vector<int>{2});
  CHECK_FALSE(n.log.taken_is_kept());  // once
  n.log.taken();
  n.done(3, 3);
  n.log.taken();
  n.done(4, 4);
  CHECK(n.log.taken_is_kept());  // the second one
  CHECK(n.repeat() == std::vector<int>{4});
}

TEST_CASE("a state of which it is not known where it stands has not the mark of an earlier one") {
  Notebook n;
  n.done(1, 1);
  n.log.taken();  // it could not be written
  n.done(2, 2);
  n.log.not_taken();  // while a run was under way
  CHECK_FALSE(n.log.taken_is_kept());
  CHECK(n.repeat() == std::vector<int>{1, 2});
}

TEST_CASE("files that runs read must stay until a later state is kept") {
  Notebook n;
  const auto reads = [&](int name, const char* file) {
    n.log.answered(n.log.enter({}, 8, n.run(name), false, {file}), result_of(CommitNumber(name)));
  };
  reads(1, "a");
  n.log.taken();
  reads(2, "b");
  CHECK(n.log.files() == std::vector<std::string>{"a", "b"});
  CHECK(n.log.taken_is_kept());
  CHECK(n.log.files() == std::vector<std::string>{"b"});
  n.log.kept();
  CHECK(n.log.files().empty());
  reads(3, "c");
  n.log.broke("enough");
  CHECK(n.log.files().empty());
}

TEST_CASE("what is done without a run is bounded, too") {
  Notebook n;
  n.log.enter_done(n.run(1), RunLog::kMostBytes, 0);
  CHECK(contains(n.log.whole().text(), "MiB"));
}

TEST_CASE("a log that was broken is whole again with a state that was taken after that") {
  Notebook n;
  n.done(1, 1);
  n.log.broke("a reset");
  n.done(2, 2);
  REQUIRE(n.log.quiet());
  n.log.taken();
  n.done(3, 3);
  CHECK(contains(n.broken(), "a reset"));
  CHECK(n.log.taken_is_kept());
  CHECK(n.repeat() == std::vector<int>{3});
  // What breaks it meanwhile breaks that state, too.
  n.log.taken();
  n.done(4, 4);
  n.log.broke("another reset");
  n.done(5, 5);
  CHECK_FALSE(n.log.taken_is_kept());
  CHECK(contains(n.broken(), "another reset"));
  n.log.taken();
  n.done(6, 0, deadline_exceeded("late"));
  CHECK_FALSE(n.log.taken_is_kept());
  // A whole keep() needs no taken one.
  n.log.taken();
  n.log.kept();
  CHECK_FALSE(n.log.taken_is_kept());
  n.done(7, 7);
  CHECK(n.repeat() == std::vector<int>{7});
}

TEST_CASE("runs that are too much since a state was taken break that, too") {
  Notebook n;
  n.log.taken();
  n.log.set_order_matters(false);
  for (int i = 0; i < 3; ++i)
    n.log.answered(n.log.enter({}, RunLog::kMostBytes / 2, n.run(i)), result_of(1));
  CHECK_FALSE(n.log.taken_is_kept());
  CHECK(contains(n.broken(), "MiB"));
}
