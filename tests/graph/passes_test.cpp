// Constant folding and common subexpressions.
#include <doctest/doctest.h>

#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

Target folding() {
  Target t = target({"/job:w/task:0/cpu:0"});
  t.evaluate = evaluate;
  return t;
}

CompiledGraph must_compile(const Maker& g, const CompileRequest& r, const Target& t) {
  auto compiled = compile(g.def, r, t);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return std::move(*compiled);
}

bool noted(const CompiledGraph& compiled, std::string_view text) {
  for (const std::string& note : compiled.notes)
    if (note.find(text) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("what depends on constants alone is computed once") {
  Maker g;
  Port a = g.constant("a", 2), b = g.constant("b", 3);
  Port sum = g.add("Add", "sum", {a, b});
  Port both = g.add("Both", "both", {sum});
  Port x = g.add("Placeholder", "x");
  g.add("AddN", "y", {{both.node, 0}, {both.node, 1}, x});
  CompiledGraph compiled = must_compile(g, request({"y", "sum"}, {}, {"x"}), folding());
  CHECK(count_op(compiled, "Const") == 3);
  CHECK(count_op(compiled, "Add") == 0);
  CHECK(count_op(compiled, "Both") == 0);
  CHECK(noted(compiled, "fold: computed 2 nodes"));
  Random random(1);
  CHECK(run_plans(compiled, {7}, random).fetches == std::vector<float>{6 + 10 + 7, 5});

  Target off = folding();
  off.disabled = {"fold"};
  CHECK(count_op(must_compile(g, request({"y"}, {}, {"x"}), off), "Both") == 1);
}

TEST_CASE("random, fed, ordered and targeted nodes are not folded") {
  Maker g;
  Port a = g.constant("a", 2);
  Port draw = g.add("Draw", "draw");
  g.add("Add", "random", {a, draw});
  g.add("Neg", "ordered", {a}, {.control = {draw.node}});
  g.add("Neg", "target", {a});
  Port fed = g.add("Neg", "fed", {a});
  g.add("Neg", "after_feed", {fed});
  CompiledGraph compiled =
      must_compile(g, request({"random", "ordered", "after_feed"}, {"target"}, {"fed"}), folding());
  CHECK_FALSE(noted(compiled, "fold"));
  CHECK(count_op(compiled, "Neg") == 3);
}

TEST_CASE("what cannot be computed at compile time is left to the run, with a note") {
  Maker g;
  g.add("Neg", "n", {g.constant("a", 2)});
  Target t = folding();
  t.evaluate = [](const NodeDef&, const std::vector<Tensor>&) -> Expected<std::vector<Tensor>> {
    return out_of_range("no");
  };
  CompiledGraph compiled = must_compile(g, request({"n"}), t);
  CHECK(count_op(compiled, "Neg") == 1);
  CHECK(noted(compiled, "'n' is left to the run"));
}

TEST_CASE("a result above 10 MiB is not folded") {
  Maker g;
  Port n = g.add("Neg", "n", {g.constant("a", 2)});
  g.def.nodes[n.node].out_shapes = {PartialShape{3 << 20}};
  CHECK(count_op(must_compile(g, request({"n"}), folding()), "Neg") == 1);
}

namespace {

// 50 products of constants of that many rows and columns; how many of them were computed.
int folded_products(std::int64_t size) {
  Maker g;
  const Tensor square = Tensor::zeros(DType::f32, Shape{size, size}).value();
  std::vector<Port> products;
  for (int i = 0; i < 50; ++i) {
    Port c = g.add("Const", "c" + std::to_string(i), {}, {.attrs = {{"value", square}}});
    products.push_back(g.add("Product", "p" + std::to_string(i), {c, c}));
  }
  g.add("AddN", "y", products);
  for (NodeDef& node : g.def.nodes) node.out_shapes = {PartialShape{size, size}};
  int computed = 0;
  Target t = folding();
  t.disabled = {"cse"};
  t.evaluate = [&](const NodeDef& node, const std::vector<Tensor>&) {
    computed += node.op == "Product";
    return Expected<std::vector<Tensor>>({square});
  };
  CompiledGraph compiled = must_compile(g, request({"y"}), t);
  CHECK(int(count_op(compiled, "Product")) == (computed == 50 ? 0 : 50 - computed));
  CHECK(noted(compiled, "left to the run") == (computed < 50));
  return computed;
}

}  // namespace

TEST_CASE("products of constants are folded while that is little work") {
  CHECK(folded_products(16) == 50);
  CHECK(folded_products(128) == 7);  // together they would be too much
  CHECK(folded_products(1500) == 0);
}

TEST_CASE("what makes much of little is folded up to 10 MiB in all") {
  // The zeros of a large model's optimizer: 24 of 1 MiB, each made of a scalar.
  constexpr std::int64_t kElements = 1 << 18;
  Maker g;
  std::vector<Port> made;
  for (int i = 0; i < 24; ++i) {
    Port c = g.constant("c" + std::to_string(i), float(i));
    made.push_back(g.add("Neg", "n" + std::to_string(i), {c}));
    g.def.nodes[made.back().node].out_shapes = {PartialShape{kElements}};
  }
  g.add("AddN", "y", made);
  Target t = folding();
  int computed = 0;
  t.evaluate = [&](const NodeDef& node, const std::vector<Tensor>&) {
    computed += node.op == "Neg";
    return Expected<std::vector<Tensor>>({Tensor::zeros(DType::f32, Shape{kElements}).value()});
  };
  const CompiledGraph compiled = must_compile(g, request({"y"}), t);
  CHECK(computed == 10);
  CHECK(count_op(compiled, "Neg") == 14);
  CHECK(noted(compiled, "fold: 14 nodes make much of little and are left to the run"));
}

TEST_CASE("equal nodes become one, and so do the nodes behind them") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  Port a = g.add("Neg", "a", {x}), b = g.add("Neg", "b", {x}), c = g.add("Neg", "c", {x});
  Port p = g.add("Sub", "p", {a, x}), q = g.add("Sub", "q", {b, x});
  g.add("AddN", "y", {p, q, c});
  CompiledGraph compiled =
      must_compile(g, request({"y", "b", "c"}, {"q"}, {"x"}), target({"/job:w/task:0/cpu:0"}));
  CHECK(compiled.plans[0].nodes.size() == 3);
  CHECK(noted(compiled, "cse: merged 3 nodes"));
  Random random(1);
  CHECK(run_plans(compiled, {4}, random).fetches == std::vector<float>{-20, -4, -4});
}

TEST_CASE("only commutative ops merge across the order of their inputs") {
  Maker g;
  Port x = g.add("Placeholder", "x"), y = g.add("Placeholder", "y");
  g.add("AddN", "sum",
        {g.add("Add", "a", {x, y}), g.add("Add", "b", {y, x}), g.add("Sub", "s", {x, y}),
         g.add("Sub", "t", {y, x})});
  CompiledGraph compiled =
      must_compile(g, request({"sum"}, {}, {"x", "y"}), target({"/job:w/task:0/cpu:0"}));
  CHECK(count_op(compiled, "Add") == 1);
  CHECK(count_op(compiled, "Sub") == 2);
}

TEST_CASE("attributes, devices, control edges and state keep nodes apart") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  Port c1 = g.constant("c1", 1), c2 = g.constant("c2", 2), c3 = g.constant("c3", 1);
  Port d1 = g.add("Draw", "d1"), d2 = g.add("Draw", "d2");
  Port n1 = g.add("Neg", "n1", {x}), n2 = g.add("Neg", "n2", {x}, {.device = "/cpu:0"}),
       n3 = g.add("Neg", "n3", {x}, {.control = {d1.node}}),
       n4 = g.add("Neg", "n4", {x}, {.control = {d1.node}});
  g.add("AddN", "y", {c1, c2, c3, d1, d2, n1, n2, n3, n4});
  Target t = target({"/job:w/task:0/cpu:0"});
  CompiledGraph compiled = must_compile(g, request({"y"}, {}, {"x"}), t);
  CHECK(count_op(compiled, "Const") == 2);
  CHECK(count_op(compiled, "Draw") == 2);
  CHECK(count_op(compiled, "Neg") == 3);
  t.disabled = {"cse"};
  CHECK(count_op(must_compile(g, request({"y"}, {}, {"x"}), t), "Neg") == 4);
}
