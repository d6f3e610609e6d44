// Mutexes shared by sessions, under many schedules and deadlines, in virtual time.
#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "tests/actors/sim/world.hpp"
#include "tests/actors/support/nodes.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// What a session does with a counter on one worker that a mutex on the other one guards, and with
// two mutexes that another session acquires in the other order.
struct LockingGraph {
  Graph g;
  Variable counter;
  Op count, both;

  explicit LockingGraph(bool forth) {
    counter = variable_on(g, kTask0, "counter", Tensor::scalar(0.f));
    Output one, two;
    {
      auto there = g.with_device(kTask1);
      one = mutex(g, {.shared_name = "one"});
    }
    {
      auto there = g.with_device(kTask0);
      two = mutex(g, {.shared_name = "two"});
    }
    const Op first = mutex_acquire(forth ? one : two);
    Op second;
    {
      auto after = g.with_control({first});
      second = mutex_acquire(forth ? two : one);
    }
    {
      auto after = g.with_control({second});
      both = assign(counter, counter + 1.0f);
    }
    const Op acquire = mutex_acquire(one);
    auto after = g.with_control({acquire});
    count = assign(counter, counter + 1.0f);
  }
};

struct LockedOutcome {
  int passed = 0, fired = 0;
  float counted = 0;
  std::uint64_t trace = 0;
  bool operator==(const LockedOutcome&) const = default;
};

LockedOutcome lock_in_turn(std::uint64_t seed) {
  LockingGraph forth(true), back(false);
  World world(seed);
  Random random(seed);
  Client first(world.master(), 1, forth.g), second(world.master(), 2, back.g);
  first.init();
  REQUIRE(world.run({&first}).ok());
  first.compile("count", {}, {forth.count}).compile("both", {}, {forth.both});
  second.compile("count", {}, {back.count}).compile("both", {}, {back.both});
  const std::size_t before = first.ended().size();
  for (Client* client : {&first, &second})
    for (int i = 0; i < 6; ++i)
      client->try_run(random.below(2) == 0 ? "count" : "both",
                      std::chrono::microseconds((std::uint64_t{100} << random.below(10))));
  REQUIRE(world.run({&first, &second}).ok());
  LockedOutcome outcome;
  const auto note = [&](const Client& client, std::size_t from) {
    for (std::size_t i = from; i < client.ended().size(); ++i) {
      const Status& status = client.ended()[i];
      if (!status.ok()) CHECK_MESSAGE(status.code() == Code::deadline_exceeded, status.text());
      ++(status.ok() ? outcome.passed : outcome.fired);
    }
  };
  note(first, before);
  note(second, 0);
  first.compile("read", {forth.counter.value()}, {}).run("read");
  REQUIRE(world.run({&first}).ok());
  outcome.counted = first.fetched().back()[0].item<float>();
  CHECK(outcome.counted == float(outcome.passed));
  first.close();
  second.close();
  REQUIRE(world.run({&first, &second}).ok());
  outcome.trace = world.trace();
  const Status end = world.shut_down();
  CHECK_MESSAGE(end.ok(), end.text());
  return outcome;
}

void lock_under(std::uint64_t seeds) {
  std::uint64_t passed = 0, fired = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    const LockedOutcome outcome = lock_in_turn(seed);
    passed += std::uint64_t(outcome.passed);
    fired += std::uint64_t(outcome.fired);
    if (seed % 20 == 0) CHECK(lock_in_turn(seed) == outcome);
  }
  CHECK(passed > seeds);
  CHECK(fired > seeds);
}

}  // namespace

TEST_CASE("sessions that lock in different orders lose nothing and never hang, in any schedule") {
  lock_under(schedules(40));
}

TEST_CASE("sessions that lock in different orders, under many more schedules [slow]") {
  lock_under(schedules(2000));
}
