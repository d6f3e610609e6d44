// Whatever fails in a simulated cluster: the job goes on, or ends as said, and nothing hangs.
#include <doctest/doctest.h>

#include "core/log.hpp"
#include "tests/actors/sim/faulty_jobs.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/contains.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// One of `again` seeds is played twice: the same seed, the same history.
FaultyJobs play_all(std::uint64_t seeds, std::uint64_t events, std::uint64_t again) {
  const LogLevel before = log_level();
  set_log_level(LogLevel::off);  // each loss is logged
  FaultyJobs sum;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    const FaultyJobs one = play(seed, events);
    for (const std::string& wrong : one.wrong) FAIL_CHECK(wrong);
    REQUIRE(one.events >= events);
    if (seed % again == 0) CHECK(play(seed, events).history == one.history);
    for (std::size_t f = 0; f < sum.faults.size(); ++f) sum.faults[f] += one.faults[f];
    for (auto member : {&FaultyJobs::events, &FaultyJobs::jobs, &FaultyJobs::finished,
                        &FaultyJobs::gave_up, &FaultyJobs::not_begun, &FaultyJobs::masters,
                        &FaultyJobs::resumed, &FaultyJobs::undisturbed, &FaultyJobs::inlined})
      sum.*member += one.*member;
  }
  set_log_level(before);
  for (std::size_t f = 0; f < sum.faults.size(); ++f) {
    const std::string name = kFaultNames[f];
    MESSAGE(name, ": ", sum.faults[f]);
  }
  MESSAGE("seeds: ", seeds, ", events: ", sum.events, ", jobs: ", sum.jobs,
          ", with inline path: ", sum.inlined);
  MESSAGE("finished: ", sum.finished,
          ", of these with faults that change nothing: ", sum.undisturbed,
          ", ended by a loss: ", sum.gave_up, ", not started: ", sum.not_begun,
          ", master killed: ", sum.masters, ", resumed from a file: ", sum.resumed);
  return sum;
}

}  // namespace

TEST_CASE("a job that is stopped as a whole while it starts goes on after any time") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    CAPTURE(seed);
    World world(seed, {.children = true});
    const std::uint64_t when = 1 + Random(seed).below(50);
    world.before_each_event([&] {
      if (world.events() != when) return;
      for (World::Index i = 0; i < world.processes(); ++i)
        if (world.process(i).running()) world.pause(i, std::chrono::minutes(1));
    });
    const Status started = world.start();
    CHECK_MESSAGE(started.ok(), started.text());
    const Status ended = world.shut_down();
    CHECK_MESSAGE(ended.ok(), ended.text());
  }
}

TEST_CASE("a job that waits for a worker gives up when it said, though nothing happens then") {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    World world(seed, {.children = true});
    world.before_each_event([&] {
      const World::Index last = world.processes() - 1;
      if (world.events() > 0 && last > 1 && world.process(last).running())
        world.pause(last, std::chrono::hours(1));
    });
    const Status started = world.start();
    CHECK(started.code() == Code::deadline_exceeded);
    CHECK_MESSAGE(contains(started.text(), "of 2 workers joined within 20 s"), started.text());
    CHECK(world.now() < std::chrono::seconds(25));
  }
}

TEST_CASE("a job under faults goes on or ends as said, and never hangs") {
  const FaultyJobs sum = play_all(20, 3'000, 5);
  for (std::uint64_t count : sum.faults) CHECK(count > 20);
  CHECK(sum.finished > 0);
  CHECK(sum.gave_up > 0);
}

TEST_CASE("a job under faults goes on or ends as said, and never hangs, long [slow]") {
  const FaultyJobs sum = play_all(300, 3'000, 1);
  for (std::uint64_t count : sum.faults) CHECK(count >= 1'000);
  for (std::uint64_t count :
       {sum.finished, sum.gave_up, sum.not_begun, sum.masters, sum.resumed, sum.undisturbed})
    CHECK(count >= 100);
  CHECK(sum.inlined > sum.jobs / 3);
  CHECK(sum.inlined < sum.jobs * 2 / 3);
}
