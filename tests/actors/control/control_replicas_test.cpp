// Replicas that take different branches: each does what its own part of the data says, and what is
// shared is made of those that have a part in it.
#include <doctest/doctest.h>

#include "ops/api.hpp"
#include "ops/optim/optim.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// Two replicas, each of which takes a number of its own from a queue.
struct TwoReplicas {
  explicit TwoReplicas(const Place& place) : queue(queue_on(g, place.first)) {
    fed = placeholder<float>(g, PartialShape::scalar(), "fed");
    put = enqueue(queue, {fed});
    own = take_from(queue);
  }
  void start(const Place& place) {
    s.emplace(g, place);
    (*s)->init();
  }
  CompiledStep compile(const std::vector<Output>& fetches, const std::vector<Op>& targets = {}) {
    return (*s)->compile(fetches, targets, {}, {.replicas = 2});
  }
  void give(std::initializer_list<float> numbers) {
    for (float x : numbers) (*s)->run({}, {put}, {{fed, Tensor::scalar(x)}});
  }
  float value(Output o) { return (*s)->run({o})[0].item<float>(); }

  Graph g;
  Output queue, fed, own;
  Op put;
  std::optional<PlacedSession> s;
};

}  // namespace

TEST_CASE("a write in a branch is made of the replicas that took it; of none it does not happen") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    Variable v = variable_on(r.g, place.second, "v", Tensor::scalar(100.0f));
    Output lr = constant(r.g, 1.0f);
    Op made = cond(
        r.own > 0.0f,
        [&] {
          r.g.add(NodeSpec{.op = "ApplyGradientDescent", .inputs = {v.handle(), lr, r.own}});
        },
        [&] {});
    r.start(place);
    auto step = r.compile({}, {made});
    r.give({4, 2});
    step.run();
    CHECK(r.value(v) == 97);  // the mean of both
    r.give({-1, 6});
    step.run();
    CHECK(r.value(v) == 91);  // the mean of one
    r.give({8, -1});
    step.run();
    CHECK(r.value(v) == 83);
    r.give({-1, -1});
    step.run();
    CHECK(r.value(v) == 83);
  }
}

TEST_CASE("what is counted in a branch counts once, however many replicas take it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    Variable steps = variable_on(r.g, place.second, "steps", Tensor::scalar(0.0f));
    Op made = cond(
        r.own > 0.0f, [&] { assign_add(steps, constant(r.g, 1.0f)); }, [&] {});
    r.start(place);
    auto step = r.compile({}, {made});
    r.give({4, 2});
    step.run();
    CHECK(r.value(steps) == 1);
    r.give({-1, 6});
    step.run();
    CHECK(r.value(steps) == 2);
    r.give({-1, -1});
    step.run();
    CHECK(r.value(steps) == 2);
  }
}

TEST_CASE("a read after the branches sees what those replicas wrote that took them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    Variable v = variable_on(r.g, place.second, "v", Tensor::scalar(100.0f));
    Output lr = constant(r.g, 1.0f);
    Op made = cond(
        r.own > 0.0f,
        [&] {
          Op write =
              r.g.add(NodeSpec{.op = "ApplyGradientDescent", .inputs = {v.handle(), lr, r.own}});
          return std::vector<Output>{read(v, {write})};
        },
        [&] { return std::vector<Output>{constant(r.g, -5.0f)}; })[0];
    Output seen = made.output(), after = read(v, {made});
    r.start(place);
    auto step = r.compile({after, seen});
    r.give({4, 2});
    auto both = step.run();
    CHECK(both[0].item<float>() == 97);
    CHECK(both[1].item<float>() == 97);
    r.give({-1, 6});
    auto one = step.run();
    CHECK(one[0].item<float>() == 91);
    CHECK(one[1].item<float>() == (91.0f - 5.0f) / 2);
    r.give({-1, -1});
    auto none = step.run();
    CHECK(none[0].item<float>() == 91);
    CHECK(none[1].item<float>() == -5);
  }
}

TEST_CASE("a read in a branch is asked by the replicas that take it") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    Variable v = variable_on(r.g, place.second, "v", Tensor::scalar(10.0f));
    Output y = cond(
        r.own > 0.0f, [&] { return read(v) * r.own; }, [&] { return constant(r.g, 1.0f); });
    r.start(place);
    auto step = r.compile({y});
    r.give({4, -2});
    CHECK(step.run()[0].item<float>() == 20.5f);
    r.give({-4, -2});
    CHECK(step.run()[0].item<float>() == 1);
  }
}

TEST_CASE("gradients of branches meet in the optimizer, zeros of those that did not take them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    Variable v = variable_on(r.g, place.second, "v", Tensor::scalar(10.0f));
    Output loss = cond(
        r.own > 0.0f, [&] { return read(v) * r.own; }, [&] { return r.own; });
    Op train = optim::Sgd{.lr = 1.0}.minimize(loss, {v});
    r.start(place);
    auto step = r.compile({}, {train});
    r.give({4, -2});
    step.run();
    CHECK(r.value(v) == 8);
  }
}

TEST_CASE("a write behind a Merge on one side of a Switch is made of the replicas that took it") {
  TwoReplicas r(kPlaces[0]);
  Variable v = variable(r.g, "v", Tensor::scalar(100.0f));
  Op sides = r.g.add(NodeSpec{.op = "Switch", .inputs = {r.own, r.own > 0.0f}});
  Op inner = r.g.add(NodeSpec{.op = "Switch", .inputs = {sides.output(1), r.own > 3.0f}});
  Output taken =
      r.g.add(NodeSpec{.op = "Merge", .inputs = {inner.output(0), inner.output(1)}}).output();
  Op write = r.g.add(
      NodeSpec{.op = "ApplyGradientDescent", .inputs = {v.handle(), constant(r.g, 1.0f), taken}});
  Output after =
      r.g.add(NodeSpec{.op = "Merge", .inputs = {sides.output(0), read(v, {write})}}).output();
  r.start(kPlaces[0]);
  auto step = r.compile({after}, {write});
  const auto seen = [&](std::initializer_list<float> numbers) {
    r.give(numbers);
    const auto got = step.try_run({}, {.timeout = std::chrono::seconds(20)});
    CHECK_MESSAGE(got.ok(), got.status().text());
    return r.value(v);
  };
  CHECK(seen({4, 2}) == 97);
  CHECK(seen({-1, 6}) == 91);
  CHECK(seen({-1, -2}) == 91);
  CHECK(seen({5, -2}) == 86);
}

TEST_CASE("numbers of few bits that replicas fetch have a mean where their sum is too large") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    TwoReplicas r(place);
    const Output small = cast<half>(r.own), rough = cast<bfloat16>(r.own);
    r.start(place);
    auto step = r.compile({small, rough});
    r.give({40960, 61440});  // together more than the largest f16, 65504
    const auto means = step.run();
    CHECK(means[0].dtype() == DType::f16);
    CHECK(float(means[0].item<half>()) == 51200);
    CHECK(means[1].dtype() == DType::bf16);
    CHECK(float(means[1].item<bfloat16>()) == 51200);
  }
}

TEST_CASE("what takes the values of all replicas is refused in a branch that some may not take") {
  TwoReplicas r(kPlaces[0]);
  Output y = cond(
      r.own > 0.0f, [&] { return replica_mean({r.own}); }, [&] { return r.own; });
  r.start(kPlaces[0]);
  const Status refused = (*r.s)->try_compile({y}, {}, {}, {.replicas = 2}).status();
  CHECK(refused.code() == Code::invalid_argument);
  CHECK_MESSAGE(refused.text().find("ReplicaMean") != std::string::npos, refused.text());
}
