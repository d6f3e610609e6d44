#include "actors/client/durable_runs.hpp"

#include <doctest/doctest.h>

#include <map>
#include <vector>

#include "core/hash.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using test::contains;
using Clock = DurableRuns::Clock;

namespace {

constexpr auto kForEver = Clock::time_point::max();

// Answers by the name of who waits.
struct Waiting {
  DurableRuns runs;
  int woken = 0;
  std::uint64_t number = 0;
  std::map<int, std::vector<Status>> answers;

  Waiting() {
    number = runs.opened([this] { ++woken; });
  }
  void wait(int name, CommitNumber commit, Clock::time_point until = kForEver) {
    runs.wait(commit, until,
              [this, name](const Status& status) { answers[name].push_back(status); });
  }
  bool ok(int name) { return answers[name].size() == 1 && answers[name][0].ok(); }
  std::string text(int name) { return answers[name].empty() ? "" : answers[name][0].text(); }
};

}  // namespace

TEST_CASE("one checkpoint answers all whose commits it has") {
  Waiting w;
  w.wait(1, 1);
  CHECK(w.woken == 1);
  w.wait(2, 2);
  w.runs.taking(2);
  CHECK(!w.runs.wanted());
  w.wait(3, 2);  // it has this one, too
  CHECK(!w.runs.wanted());
  w.wait(4, 3);
  CHECK(w.runs.wanted());
  CHECK(w.answers.empty());
  w.runs.written(2, ok_status());
  CHECK((w.ok(1) && w.ok(2) && w.ok(3)));
  CHECK(w.answers.count(4) == 0);
  w.wait(5, 2);
  CHECK(w.ok(5));
}

TEST_CASE("a checkpoint that cannot be written answers those it was for with its error") {
  Waiting w;
  w.wait(1, 7);
  w.runs.taking(7);
  w.wait(2, 8);
  w.runs.written(7, resource_exhausted("the disk is full"));
  CHECK(w.answers[1].size() == 1);
  CHECK(w.answers[1][0].code() == Code::resource_exhausted);
  CHECK(contains(w.text(1), "at commit 7, but that is not known to be in a checkpoint: the disk"));
  CHECK(w.runs.wanted());  // the other
  w.wait(3, 7);            // no checkpoint has it
  w.runs.taking(8);
  w.runs.written(8, ok_status());
  CHECK((w.ok(2) && w.ok(3)));
  w.wait(4, 9);
  w.runs.written(~CommitNumber{0}, unavailable("no state"));
  CHECK(w.answers[4][0].code() == Code::unavailable);
}

TEST_CASE("durable runs need a keeper, and end with it") {
  Waiting w;
  w.wait(1, 3);
  w.runs.closed(w.number, aborted("it has ended"));
  CHECK(w.answers[1][0].code() == Code::aborted);
  CHECK(w.runs.available().code() == Code::failed_precondition);
  w.wait(2, 3);
  CHECK(w.answers[2][0].code() == Code::aborted);
  w.runs.restored(3);
  w.wait(3, 3);
  CHECK(w.ok(3));
  w.runs.opened([] {});
  CHECK(w.runs.may_wait("run").code() == Code::failed_precondition);  // on its own thread
}

TEST_CASE("a run that moved a place without a commit waits for a state that is taken afterwards") {
  Waiting w;
  const auto wait = [&](int name) {
    w.runs.wait(
        3, kForEver, [&w, name](const Status& status) { w.answers[name].push_back(status); },
        /*committed=*/false);
  };
  w.runs.restored(3);
  w.runs.begin_state();
  wait(1);  // which that state may have or not
  w.runs.taking(3);
  CHECK(w.runs.wanted());
  w.runs.written(3, ok_status());
  CHECK(w.answers.empty());
  w.runs.begin_state();
  CHECK(!w.runs.wanted());
  w.runs.taking(3);
  w.runs.written(3, ok_status());
  CHECK(w.ok(1));
}

TEST_CASE("a durable run that the job went back behind fails") {
  Waiting w;
  w.runs.restored(3);
  w.wait(1, 4);
  w.runs.undone(3, 6);
  CHECK(w.answers[1][0].code() == Code::aborted);
  w.wait(2, 5);  // whose answer was on its way
  CHECK(w.answers[2][0].code() == Code::aborted);
  w.wait(3, 6);
  CHECK(w.answers.count(3) == 0);
  w.wait(4, 3);
  CHECK(w.ok(4));
}

TEST_CASE("the end of a keeper in whose place another came ends nobody's waiting") {
  Waiting w;
  const std::uint64_t second = w.runs.opened([] {});
  w.wait(1, 1);
  w.runs.closed(w.number, aborted("it has ended"));
  CHECK(w.answers.empty());
  w.runs.closed(second, aborted("it has ended"));
  CHECK(w.answers[1].size() == 1);
}

TEST_CASE("a durable run whose time is over is answered, and no other") {
  Waiting w;
  const Clock::time_point begin = Clock::now() + std::chrono::hours(1);
  w.wait(1, 1, begin + std::chrono::seconds(1));
  w.wait(2, 1, begin + std::chrono::seconds(3));
  w.wait(3, 1);
  CHECK(w.woken >= 2);  // whoever waits for the next end hears of an earlier one
  CHECK(*w.runs.expire(begin) == begin + std::chrono::seconds(1));
  CHECK(*w.runs.expire(begin + std::chrono::seconds(1)) == begin + std::chrono::seconds(3));
  CHECK(w.answers[1][0].code() == Code::deadline_exceeded);
  CHECK(w.answers.count(2) == 0);
  w.runs.written(1, ok_status());
  CHECK((w.ok(2) && w.ok(3)));
  CHECK(!w.runs.expire(begin + std::chrono::seconds(9)));
}

// A keeper that takes and writes states at random, some of which fail, and ends.
TEST_CASE("every durable run is answered once, with ok only if a checkpoint has it") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Waiting w;
    CommitNumber last = 0, durable = 0, taken = 0;
    bool writing = false;
    int names = 0;
    std::map<int, CommitNumber> waits;
    const auto look = [&] {
      for (const auto& [name, commit] : waits) {
        const auto found = w.answers.find(name);
        if (found == w.answers.end()) {
          REQUIRE(commit > durable);
          // Nobody is forgotten: the keeper has been woken, or will ask.
          REQUIRE((w.runs.wanted() || (writing && commit <= taken)));
          continue;
        }
        REQUIRE(found->second.size() == 1);
        if (found->second[0].ok()) REQUIRE(commit <= durable);
      }
    };
    for (int turn = 0; turn < 60; ++turn) {
      switch (random.below(4)) {
        case 0:
          ++last;
          break;
        case 1: {
          const CommitNumber commit = last - random.below(std::min<CommitNumber>(last, 3) + 1);
          waits[names] = commit;
          w.wait(names++, commit);
          break;
        }
        case 2:
          if (writing) break;
          writing = true;
          taken = last;
          w.runs.begin_state();
          w.runs.taking(taken);
          break;
        case 3:
          if (!writing) break;
          writing = false;
          const bool good = random.below(3) != 0;
          if (good) durable = taken;
          w.runs.written(taken, good ? ok_status() : resource_exhausted("full"));
          break;
      }
      look();
    }
    w.runs.closed(w.number, aborted("over"));
    REQUIRE(w.answers.size() == waits.size());
    look();
  }
}
