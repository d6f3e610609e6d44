// Putting values of a checkpoint back, before the first run.
#include <doctest/doctest.h>

#include "actors/client/shipped_graph.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

TEST_CASE("restoring variables adds nothing to the client's graph") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v, w;
    {
      auto there = g.with_device(place.second);
      v = variable(g, "v", Tensor::of<float>({2}, {1, 2}));
    }
    w = variable(g, "w", Tensor::scalar<std::int64_t>(3));
    PlacedSession s(g, place);
    const std::size_t nodes = g.def().nodes.size();
    REQUIRE(s->try_restore(
                 {{"v", Tensor::of<float>({2}, {5, 6})}, {"w", Tensor::scalar<std::int64_t>(9)}}, 7)
                .ok());
    CHECK(g.def().nodes.size() == nodes);
    CHECK(s->committed() == 7);
    auto values = s->variables();
    REQUIRE(values.size() == 2);
    CHECK(values[0].second.data<float>()[1] == 6);
    CHECK(values[1].second.item<std::int64_t>() == 9);
    // What the client adds later comes after the session's own nodes.
    Op more = assign_add(w, constant(g, std::int64_t{1}));
    Output twice = w.value() + w.value();
    s->run({}, {more});
    CHECK(s->run({twice})[0].item<std::int64_t>() == 20);
    CHECK(s->committed() == 8);
  }
}

TEST_CASE("restoring what the graph does not have is refused, and can be tried again") {
  Graph g;
  variable(g, "v", Tensor::scalar(1.0f));
  Output other = constant(g, 2.0f);
  Session s(g, one_thread());
  CHECK(s.try_restore({{"v", Tensor::scalar(4.0f)}, {"none", Tensor::scalar(4.0f)}}, 2).code() ==
        Code::not_found);
  CHECK(s.try_restore({{g.node(other.node()).name, Tensor::scalar(4.0f)}}, 2).code() ==
        Code::not_found);
  CHECK_FALSE(s.try_restore({{"v", Tensor::scalar<std::int64_t>(4)}}, 2).ok());
  CHECK_FALSE(s.try_restore({{"v", Tensor{}}}, 2).ok());
  CHECK_FALSE(s.try_restore({{"v", Tensor::of<float>({2}, {4, 4})}}, 2).ok());
  CHECK(s.try_restore({{"v", Tensor::scalar(4.0f)}, {"v", Tensor::scalar(4.0f)}}, 2).code() ==
        Code::not_found);
  CHECK(s.try_restore({{"v", Tensor::scalar(4.0f)}}, 0).code() == Code::invalid_argument);
  CHECK_THROWS_AS(s.restore({{"none", Tensor::scalar(4.0f)}}, 2), Error);
  s.restore({{"v", Tensor::scalar(4.0f)}}, 2);
  CHECK(s.variables()[0].second.item<float>() == 4);
  CHECK(s.committed() == 2);
}

TEST_CASE("a session's own nodes stay where they are while the client's graph grows") {
  Graph g;
  Variable a = variable(g, "a", Tensor::scalar(1.0f));
  ShippedGraph shipped(g);
  auto same_start = [](const GraphDef& before, const GraphDef& after) {
    REQUIRE(before.nodes.size() <= after.nodes.size());
    for (std::size_t i = 0; i < before.nodes.size(); ++i) {
      CHECK(before.nodes[i].name == after.nodes[i].name);
      CHECK(before.nodes[i].inputs == after.nodes[i].inputs);
      CHECK(before.nodes[i].control == after.nodes[i].control);
    }
    // Every input is an earlier node: nothing was renumbered wrongly.
    for (std::size_t i = 0; i < after.nodes.size(); ++i)
      for (Port in : after.nodes[i].inputs) CHECK(in.node < i);
  };
  const GraphDef first = shipped.whole();
  CHECK(first.nodes.size() == shipped.size());
  REQUIRE(shipped.add_assignments({{"a", Tensor::scalar(2.0f)}}).ok());
  const GraphDef second = shipped.whole();
  CHECK(second.nodes.size() == first.nodes.size() + 2);
  same_start(first, second);
  Variable b = variable(g, "b", Tensor::scalar(1.0f));
  Output sum = a.value() + b.value();
  const GraphDef third = shipped.whole();
  same_start(second, third);
  REQUIRE(shipped.add_assignments({{"b", Tensor::scalar(2.0f)}, {"a", Tensor::scalar(3.0f)}}).ok());
  CHECK(shipped.size() == g.def().nodes.size() + 6);
  const GraphDef fourth = shipped.whole();
  same_start(third, fourth);
  // The sum still adds the same two.
  const NodeDef& add = fourth.nodes[fourth.find(g.node(sum.node()).name)];
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(fourth.nodes[add.inputs[i].node].name == g.node(g.node(sum.node()).inputs[i].node).name);
}
