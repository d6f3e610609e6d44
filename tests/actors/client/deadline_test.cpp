// Deadlines of runs, wherever the run is when one passes.
#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "actors/client/detail/recovery.hpp"
#include "tests/actors/support/busy_lane.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;
using namespace std::chrono_literals;

namespace {

RunOptions within(std::chrono::nanoseconds timeout) {
  RunOptions options;
  options.timeout = timeout;
  return options;
}

}  // namespace

TEST_CASE("a deadline ends a run that waits for a queue, and takes no element along") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.second);
    for (int i = 0; i < 3; ++i) {
      Status status = x.take.try_run({}, within(10ms)).status();
      CHECK(status.code() == Code::deadline_exceeded);
      CHECK(status.text().find("deadline") != std::string::npos);
    }
    for (float value : {1.0f, 2.0f}) x.put(value);
    CHECK(x.take.run()[0].item<float>() == -1);
    CHECK(x.take.run({}, within(1h))[0].item<float>() == -2);
  }
}

TEST_CASE("a deadline ends a run whose other half waits for a tensor from a worker") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.first);
    CHECK(x.take.try_run({}, within(10ms)).status().code() == Code::deadline_exceeded);
    x.put(3);
    CHECK(x.take.run()[0].item<float>() == -3);
  }
}

TEST_CASE("a deadline that passes while kernels run ends the run between two of them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output start = placeholder<float>(g, {1024, 1024});
    Output work = long_work(g, place.second, start);
    Output quick = node(g, place.second, "Neg", {start}).output();
    PlacedSession s(g, place);
    auto step = s->compile({work}, {}, {start});
    auto begin = std::chrono::steady_clock::now();
    std::vector<Tensor> feeds{long_work_start()};
    CHECK(step.try_run(feeds, within(30ms)).status().code() == Code::deadline_exceeded);
    double took = seconds_since(begin);
    MESSAGE(place.name, ": answered after ", took, " s");
    // The lane is free again: it did not go on with the run.
    CHECK(s->try_run({quick}, {}, {{start, feeds[0]}}).ok());
  }
}

TEST_CASE("a deadline that passes while the run waits for a lane ends it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output start = placeholder<float>(g, {1024, 1024});
    Variable v = variable_on(g, place.second, "v", Tensor::scalar(0.0f));
    // Not cheap, so it needs the lane that the work has.
    Output sum = [&] {
      auto there = g.with_device(place.second);
      return troupe::sum(mat_mul(start, start));
    }();
    Op add = assign_add(v, sum + 1.0f);
    PlacedSession s(g, place);
    BusyLane busy(g, place.second);
    s->init();
    auto occupy = s->compile({busy.work});
    auto second = s->compile({}, {add}, {start});
    std::vector<Tensor> feeds{long_work_start()};
    PendingRun first = occupy.start();
    busy.wait();
    CHECK(second.try_run(feeds, within(20ms)).status().code() == Code::deadline_exceeded);
    first.cancel();
    busy.release();
    CHECK(first.try_get().status().code() == Code::cancelled);
    // What was late left nothing behind.
    CHECK(s->run({v.value()})[0].item<float>() == 0);
    second.run(feeds);
    CHECK(s->run({v.value()})[0].item<float>() == 1);
  }
}

TEST_CASE("a run past its deadline changes nothing, on no worker") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable a = variable_on(g, place.first, "a", Tensor::scalar(0.0f));
    Variable b = variable_on(g, place.second, "b", Tensor::scalar(0.0f));
    Gate gate(g, place.second);
    Op one = assign_add(a, constant(g, 1.0f));  // need not wait for the queue
    Op other = assign_add(b, gate.taken);
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({}, {one, other});
    CHECK(step.try_run({}, within(20ms)).status().code() == Code::deadline_exceeded);
    auto values = s->run({a.value(), b.value()});
    CHECK(values[0].item<float>() == 0);
    CHECK(values[1].item<float>() == 0);
    s->run({}, {gate.put}, {{gate.fed, Tensor::scalar(5.0f)}});
    step.run();
    values = s->run({a.value(), b.value()});
    CHECK(values[0].item<float>() == 1);
    CHECK(values[1].item<float>() == 5);
  }
}

TEST_CASE("a deadline that has passed already, or is far off, is one") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Gate gate(g, place.second);
    Output y = node(g, place.second, "Neg", {gate.fed}).output();
    PlacedSession s(g, place);
    CHECK(s->compile({gate.taken}).try_run({}, within(1ns)).status().code() ==
          Code::deadline_exceeded);
    auto step = s->compile({y}, {}, {gate.fed});
    for (auto timeout : {std::chrono::nanoseconds(0), std::chrono::nanoseconds(-1h)})
      CHECK(step.try_run({Tensor::scalar(2.0f)}, within(timeout)).status().code() ==
            Code::deadline_exceeded);
    for (auto timeout : {std::chrono::nanoseconds(1h), std::chrono::nanoseconds::max()})
      CHECK(step.run({Tensor::scalar(2.0f)}, within(timeout))[0].item<float>() == -2);
  }
}

TEST_CASE("the time that a step takes to be compiled for its run is a part of the run's") {
  Graph g;
  Session s(g, one_thread());
  std::vector<Output> many{constant(g, 1.0f)};
  for (int i = 0; i < 5000; ++i) many.push_back(-many.back());  // takes longer than the time
  says(s.try_run({many[1]}, {}, {}, within(100us)).status(), Code::deadline_exceeded,
       "had passed before it began");
  CHECK(s.try_run({many[1]}, {}, {}, within(1h)).ok());
}

TEST_CASE("what is left of a run's time is less than that, and never less than none") {
  const auto now = std::chrono::steady_clock::now();
  const auto left = [](const RunOptions& options, auto began) {
    return detail::rest_of(options, began).timeout;
  };
  CHECK_FALSE(left({}, now));
  CHECK(left(within(0ns), now) == 0ns);
  CHECK(left(within(-1h), now) == -1h);
  CHECK(left(within(std::chrono::nanoseconds::max()), now) == std::chrono::nanoseconds::max());
  CHECK(left(within(1h), now) <= 1h);
  CHECK(left(within(1h), now - 30min) <= 30min);
  CHECK(left(within(1h), now - 2h) == 0ns);
}

TEST_CASE("what a run waits for while the session keeps its state is a part of its time") {
  Graph g;
  Cluster cluster;
  cluster.workers = 1;
  const auto core = std::make_shared<detail::SessionCore>(g, cluster, nullptr);  // not started
  const auto step = std::make_shared<detail::Step>();
  step->core = core;
  detail::Run run;
  std::optional<detail::Alone> keeps(*core);
  std::thread client([&] { detail::start(*step, {}, within(1ns), run); });
  keeps.reset();
  client.join();
  says(run.wait().status, Code::deadline_exceeded, "had passed before it began");
}

TEST_CASE("deadlines of many runs at once end each of them, and no other") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.second);
    PendingRun patient = x.take.start();
    std::vector<PendingRun> late;
    for (int i = 0; i < 20; ++i) late.push_back(x.take.start({}, within((5 + i) * 1ms)));
    for (PendingRun& run : late) CHECK(run.try_get().status().code() == Code::deadline_exceeded);
    CHECK_FALSE(patient.done());
    x.put(7);
    CHECK(patient.get()[0].item<float>() == -7);
  }
}

// The write is ready long before the rest of its run, which fails, is late or is cancelled.
TEST_CASE("a write that is ready early waits for the rest of its run") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    auto there = g.with_device(place.second);
    Variable v = variable(g, "v", Tensor::scalar(0.0f));
    Op add = assign_add(v, constant(g, 1.0f));
    Output start = placeholder<float>(g, {-1, -1});
    Output behind = start;  // what is cheap, so that the write comes first
    for (int i = 0; i < 5; ++i) behind = reshape(behind, shape(start));
    Output work = long_work(g, place.second, behind);
    Output index = placeholder<std::int64_t>(g, {1});
    Output late = gather(reshape(work, constant<std::int64_t>(g, {1}, {-1})), index);
    PlacedSession s(g, place);
    s->init();
    auto alone = s->compile({}, {add}), step = s->compile({late}, {add}, {start, index});
    Variable unset = variable(g, "unset", Tensor::scalar(0.0f));
    auto refused = s->compile({unset.value()}, {add});
    float added = 0;
    // What was said of the run is what happened, and nothing stands in the way of the next one.
    auto check = [&](const Status& status, Code code) {
      CHECK_MESSAGE(status.code() == code, status.text());
      CHECK(s->run({v.value()})[0].item<float>() == added);
      Status next = alone.try_run().status();
      CHECK_MESSAGE(next.ok(), next.text());
      CHECK(s->run({v.value()})[0].item<float>() == ++added);
    };
    Tensor small = Tensor::zeros(DType::f32, {64, 64}).value();
    auto at = [](std::int64_t i) { return Tensor::of<std::int64_t>({1}, {i}); };
    for (int i = 0; i < 20; ++i) check(refused.try_run().status(), Code::failed_precondition);
    check(step.try_run({small, at(70'000)}).status(), Code::invalid_argument);
    for (bool bare : {false, true}) {
      auto slow = bare ? s->compile({work}, {add}, {start}) : step;
      std::vector<Tensor> feeds{long_work_start()};
      if (!bare) feeds.push_back(at(0));
      check(slow.try_run(feeds, within(30ms)).status(), Code::deadline_exceeded);
      PendingRun run = slow.start(feeds);
      run.cancel();
      check(run.try_get().status(), Code::cancelled);
    }
    ++added;
    check(step.try_run({small, at(0)}).status(), Code::ok);
  }
}
