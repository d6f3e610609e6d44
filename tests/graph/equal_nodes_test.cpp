#include "graph/detail/equal_nodes.hpp"

#include <doctest/doctest.h>

#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

constexpr int kMany = 100'000;

// Nine numbers, of which the last alone tells constants apart.
Tensor nine(int last) {
  Tensor t = Tensor::zeros(DType::f32, Shape{9}).value();
  t.mutable_data<float>()[8] = float(last);
  return t;
}

Port add_constant(Maker& g, int i, Tensor value) {
  return g.add("Const", "c" + std::to_string(i), {}, {.attrs = {{"value", std::move(value)}}});
}

std::size_t found_in(const GraphDef& graph, detail::EqualNodes& nodes) {
  std::size_t found = 0;
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    found += nodes.find_or_add(id, false) != kNoNode;
  return found;
}

}  // namespace

TEST_CASE("constants that begin alike are told apart without comparing them") {
  Maker g;
  for (int i = 0; i < kMany; ++i) add_constant(g, i, nine(i));
  detail::EqualNodes nodes(g.def);
  CHECK(found_in(g.def, nodes) == 0);
  CHECK(nodes.compared() < 100);
}

TEST_CASE("constants of equal contents are found by one comparison each") {
  Maker g;
  for (int i = 0; i < 1000; ++i) add_constant(g, i, nine(i % 10));
  detail::EqualNodes nodes(g.def);
  CHECK(found_in(g.def, nodes) == 990);
  CHECK(nodes.compared() == 990);
}

TEST_CASE("nodes that differ in what they stand with alone are not compared") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  for (int i = 0; i < 1000; ++i)
    g.add("Neg", "n" + std::to_string(i), {x}, {.colocate = {"x" + std::to_string(i)}});
  detail::EqualNodes nodes(g.def);
  CHECK(found_in(g.def, nodes) == 0);
  CHECK(nodes.compared() == 0);
}

TEST_CASE("a graph whose hashes all collide costs a few comparisons a node") {
  Maker g;
  for (int i = 0; i < 10'000; ++i) add_constant(g, i, nine(i));
  add_constant(g, 10'000, nine(0));
  detail::EqualNodes nodes(g.def, 0);
  CHECK(found_in(g.def, nodes) == 1);  // the last one, whose twin came early
  CHECK(nodes.compared() <= 16 * 10'001);
}

TEST_CASE("equal nodes are found whatever the order of two inputs that commute") {
  Maker g;
  Port x = g.add("Placeholder", "x"), y = g.add("Placeholder", "y");
  Port a = g.add("Add", "a", {x, y}), b = g.add("Add", "b", {y, x}), c = g.add("Add", "c", {y, y});
  detail::EqualNodes nodes(g.def);
  CHECK(nodes.find_or_add(a.node, true) == kNoNode);
  CHECK(nodes.find_or_add(b.node, true) == a.node);
  CHECK(nodes.find_or_add(c.node, true) == kNoNode);
  detail::EqualNodes ordered(g.def);
  CHECK(ordered.find_or_add(a.node, false) == kNoNode);
  CHECK(ordered.find_or_add(b.node, false) == kNoNode);
}
