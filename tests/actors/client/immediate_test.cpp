// Runs with Commit::immediate: done once, whatever others have changed meanwhile.
#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "ops/api.hpp"
#include "tests/actors/support/busy_lane.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A slow run reads `v`, waits for an element of a queue, and adds ten times what it read; a fast
// one adds 1.
struct Race {
  Graph g;
  Variable v;
  Output read, x, out;
  Op slow, fast, put;
  PlacedSession session;

  explicit Race(const Place& place)
      : v(variable(g, "v", constant(g, 1.0f))), session((build(place), g), place) {
    session->init();
  }
  void build(const Place& place) {
    x = placeholder<float>(g, {}, "x");
    read = identity(v);
    Output tenfold;
    {
      const auto there = g.with_device(place.second);
      const Output q = fifo_queue(g, {DType::f32}, {.shapes = {PartialShape::scalar()}});
      put = enqueue(q, {x});
      out = dequeue(q, {DType::f32}, {.shapes = {PartialShape::scalar()}})[0];
      tenfold = read * 10.0f + 0.0f * out;
    }
    slow = assign_add(v, tenfold);
    fast = assign_add(v, constant(g, 1.0f));
  }
  void until_blocked() {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    for (;;) {
      for (const std::string& line : session->describe())
        if (line.find("waits for a queue") != std::string::npos) return;
      REQUIRE(std::chrono::steady_clock::now() < until);
      std::this_thread::yield();
    }
  }
  // The slow run, during which the fast one commits; what it read.
  float overtaken(const RunOptions& options) {
    const CompiledStep slowly = session->compile({read}, {slow}),
                       quickly = session->compile({}, {fast}),
                       puts = session->compile({}, {put}, {x});
    PendingRun pending = slowly.start({}, options);
    until_blocked();
    quickly.run(std::vector<Tensor>{});
    puts.run({Tensor::scalar(0.0f)});
    return pending.get()[0].item<float>();
  }
  float value() { return session->run({v.value()})[0].item<float>(); }
};

}  // namespace

TEST_CASE("an immediate run updates the values of that moment, and tells how stale it was") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Race checked(place);
    CHECK(checked.overtaken({}) == 2);  // it was done again
    CHECK(checked.value() == 22);

    Race race(place);
    const auto staleness = std::make_shared<Staleness>();
    CHECK(race.overtaken({.commit = Commit::immediate, .staleness = staleness}) == 1);
    CHECK(race.value() == 12);
    CHECK(staleness->runs() == 1);
    CHECK(staleness->most() == 2);  // the other update, and what was put into the queue
    CHECK(staleness->mean() == 2);
  }
}

TEST_CASE("immediate runs of several threads lose no update, and see all of each or none") {
  constexpr int kThreads = 4, kRuns = 25;
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    const Variable v = variable(g, "v", zeros(g, {1000}));
    Output of_w;
    Op add_w;
    {
      const auto there = g.with_device(place.second);
      const Variable w = variable(g, "w", zeros(g, {1000}));
      of_w = max(w.value());
      add_w = assign_add(w, zeros(g, {1000}) + (of_w * 0.0f + 1.0f));
    }
    const Output of_v = max(v.value());
    const Op add_v = assign_add(v, zeros(g, {1000}) + (of_v * 0.0f + 1.0f));
    PlacedSession session(g, place);
    session->init();
    const CompiledStep step = session->compile({of_v, of_w}, {add_v, add_w});
    const auto staleness = std::make_shared<Staleness>();
    std::vector<std::thread> threads;
    std::vector<Status> failed(kThreads);
    std::vector<int> torn(kThreads);
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kRuns && failed[t].ok(); ++i) {
          const auto got = step.try_run({}, {.commit = Commit::immediate, .staleness = staleness});
          failed[t] = got.status();
          if (got.ok()) torn[t] += (*got)[0].item<float>() != (*got)[1].item<float>();
        }
      });
    for (std::thread& thread : threads) thread.join();
    for (const Status& status : failed) CHECK_MESSAGE(status.ok(), status.text());
    for (int times : torn) CHECK(times == 0);
    for (const Tensor& sum : session->run({of_v, of_w}))
      CHECK(sum.item<float>() == kThreads * kRuns);
    CHECK(staleness->runs() == kThreads * kRuns);
    CHECK(staleness->mean() <= double(staleness->most()));
    MESSAGE("stale by ", staleness->mean(), " commits, at most by ", staleness->most());
  }
}

TEST_CASE("an immediate run does not wait for the lane of a worker that only has its variables") {
  Graph g;
  const Variable v = variable_on(g, kTask0, "v", Tensor::scalar(1.0f));
  BusyLane busy(g, kTask0);
  Output seen, grown;
  {
    const auto there = g.with_device(kTask1);
    seen = v * 1.0f;
    grown = seen * 2.0f;
  }
  const Op add = assign_add(v, grown);
  PlacedSession session(g, kPlaces[1]);
  session->init();
  const CompiledStep occupies = session->compile({busy.work}),
                     step = session->compile({seen}, {add});
  PendingRun occupied = occupies.start();
  busy.wait();
  float value = 1;
  for (int i = 0; i < 4; ++i, value *= 3) {  // each reads what the one before has made
    const auto got =
        step.try_run({}, {.timeout = std::chrono::seconds(20), .commit = Commit::immediate});
    REQUIRE_MESSAGE(got.ok(), got.status().text());
    CHECK((*got)[0].item<float>() == value);
  }
  busy.release();
  occupied.get();
  CHECK(session->run({v.value()})[0].item<float>() == value);
}
