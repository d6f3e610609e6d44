#include "actors/client/run_log.hpp"

#include <doctest/doctest.h>

#include "core/hash.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using test::contains;

namespace {

// What would be done again: the runs by name.
struct Notebook {
  RunLog log;
  std::vector<int> again;

  RunLog::Again run(int name, CommitNumber committed = 0) {
    return [this, name, committed]() -> Expected<CommitNumber> {
      again.push_back(name);
      return committed;
    };
  }
  // A run that is over.
  void done(int name, CommitNumber committed, bool ok = true) {
    const std::uint64_t n = log.enter({}, 8, run(name, committed));
    log.answered(n, ok, committed);
  }
  std::vector<int> repeat() {
    again.clear();
    const auto all = log.done();
    REQUIRE(all.ok());
    for (const auto& each : *all) CHECK(*each.again() == each.committed);
    return again;
  }
};

}  // namespace

TEST_CASE("runs since a state are done again in order, without those that failed") {
  Notebook n;
  n.done(1, 1);
  n.done(2, 0);
  n.done(3, 2);
  n.done(4, 0, false);
  n.done(5, 0);
  CHECK(n.repeat() == std::vector<int>{1, 2, 3, 5});
  CHECK(n.repeat() == std::vector<int>{1, 2, 3, 5});  // as often as it takes
  const std::uint64_t taking = n.log.taking();
  n.log.kept(taking, 2);
  CHECK(n.repeat().empty());
  n.done(6, 3);
  n.log.enter_done(n.run(7));
  CHECK(n.repeat() == std::vector<int>{6, 7});
}

TEST_CASE("a run that commits while the state is taken is done again only if the state lacks it") {
  Notebook n;
  const std::uint64_t early = n.log.enter({}, 0, n.run(1, 5));
  const std::uint64_t late = n.log.enter({}, 0, n.run(2, 6));
  const std::uint64_t taking = n.log.taking();
  const std::uint64_t reads = n.log.enter({}, 0, n.run(3, 0));
  n.log.answered(early, true, 5);
  n.log.answered(reads, true, 0);
  n.log.kept(taking, 5);
  n.log.answered(late, true, 6);
  CHECK(n.repeat() == std::vector<int>{2, 3});
}

TEST_CASE("commits of several clients are done again in the order of their numbers") {
  Notebook n;
  n.done(1, 2);
  n.done(10, 0);
  n.done(2, 1);
  n.done(3, 3);
  CHECK(n.repeat() == std::vector<int>{2, 10, 1, 3});
}

TEST_CASE("a run whose answer nobody took counts by its call") {
  Notebook n;
  const auto good = std::make_shared<Call>(), bad = std::make_shared<Call>(),
             open = std::make_shared<Call>();
  n.log.enter(good, 0, n.run(1, 4));
  n.log.enter(bad, 0, n.run(2, 5));
  n.log.enter(open, 0, n.run(3, 6));
  n.log.enter(std::make_shared<Call>(), 0, n.run(4, 7));  // nobody has it any more
  CallResult result;
  result.committed = 4;
  good->finish(result);
  result.status = unavailable("lost");
  bad->finish(result);
  CHECK(n.repeat() == std::vector<int>{1});
}

TEST_CASE("a log that cannot be done again says why, until the state is kept anew") {
  Notebook n;
  n.done(1, 1);
  n.log.broke("containers were reset");
  CHECK(contains(n.log.done().status().text(), "containers were reset"));
  n.done(2, 2);
  CHECK_FALSE(n.log.whole().ok());
  n.log.kept(n.log.taking(), 2);
  n.done(3, 3);
  CHECK(n.repeat() == std::vector<int>{3});
  (void)n.log.enter({}, RunLog::kMostBytes, n.run(4, 4));
  CHECK(contains(n.log.whole().text(), "1 runs"));
  n.log.kept(n.log.taking(), 4);
  CHECK(n.repeat().empty());
}

TEST_CASE("random clients, losses and kept states") {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Notebook n;
    // The truth: what has happened, and what the kept state has.
    struct Run {
      int name;
      std::uint64_t number;
    };
    std::vector<Run> open;
    std::vector<std::pair<CommitNumber, int>> lacking;
    CommitNumber commit = 0;
    for (int name = 0; name < 60; ++name) {
      const std::uint64_t deed = random.below(10);
      if (deed < 5) {
        open.push_back({name, n.log.enter({}, 1, [] { return Expected<CommitNumber>(0); })});
      } else if (deed < 9 && !open.empty()) {
        const std::size_t k = random.below(open.size());
        const bool ok = random.below(5) != 0;
        n.log.answered(open[k].number, ok, ok ? ++commit : 0);
        if (ok) lacking.emplace_back(commit, open[k].name);
        open.erase(open.begin() + std::ptrdiff_t(k));
      } else {
        const CommitNumber at = commit;
        n.log.kept(n.log.taking(), at);
        std::erase_if(lacking, [&](const auto& each) { return each.first <= at; });
      }
    }
    const auto done = n.log.done();
    REQUIRE(done.ok());
    REQUIRE(done->size() == lacking.size());
    for (std::size_t i = 0; i < lacking.size(); ++i)
      CHECK((*done)[i].committed == lacking[i].first);
  }
}
