// Whatever fails in a simulated cluster: the job goes on, or ends as said, and nothing hangs.
#include <doctest/doctest.h>

#include "core/log.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"
#include "ops/api/operators.hpp"
#include "ops/api/variable.hpp"
#include "tests/actors/sim/faulty_jobs.hpp"
#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"
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

TEST_CASE("a large graph that is sent over a slow link does not delay the commits of others") {
  for (std::uint64_t seed = 0; seed < 2; ++seed) {
    CAPTURE(seed);
    Graph small(7), large(7);
    std::vector<Op> adds;  // of two tasks: such a run commits by PREPARE
    for (const char* task : {kTask0, kTask1}) {
      Variable v = variable_on(small, task, "v", Tensor::scalar(0.0f));
      adds.push_back(assign_add(v, v.value()));
    }
    Output much;
    {
      auto there = large.with_device(kTask0);
      const Output zeros = constant(large, value_or_throw(Tensor::zeros(DType::f32, {12 << 20})));
      much = sum(zeros + random_standard_normal(large, {1}));
    }
    World world(seed);
    Client trains(world.master(), 1, small), loads(world.master(), 2, large);
    trains.init().compile("add", {}, adds);
    REQUIRE(world.run({&trains}).ok());
    world.slow(0, 1, std::chrono::milliseconds(500), std::chrono::hours(1));
    world.slow(0, 2, std::chrono::milliseconds(500), std::chrono::hours(1));
    const auto began = world.now();
    loads.compile("much", {much}, {}).run("much");
    trains.run("add", 10);
    const Status ended = world.run({&trains, &loads});
    CHECK_MESSAGE(ended.ok(), ended.text());
    CHECK_MESSAGE(trains.status().ok(), trains.status().text());
    CHECK_MESSAGE(loads.status().ok(), loads.status().text());
    CHECK(world.now() - began > std::chrono::seconds(20));  // it is slow
    const Status left = world.shut_down();
    CHECK_MESSAGE(left.ok(), left.text());
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
