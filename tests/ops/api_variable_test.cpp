// What a program does with variables directly: parts of them, numbers, and one network after
// another.
#include <doctest/doctest.h>

#include "tests/misuse.hpp"
#include "tests/ops/api_interpreter.hpp"

using namespace troupe;
using test::check_refused;
using test::Interpreter;

namespace {

struct TwoLayers : nn::Module {
  using Module::Module;
  nn::Linear a{*this, "a", 2, 3}, b{*this, "b", 3, 1};
};

std::vector<Tensor> values_in(const Interpreter& run, const std::vector<Variable>& variables) {
  std::vector<Tensor> out;
  for (const Variable& v : variables) out.push_back(const_cast<Interpreter&>(run).variable(v));
  return out;
}

bool all_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = Tensor::same(a[i], b[i]);
  return same;
}

}  // namespace

TEST_CASE("parts of a variable are those of its value, and have its gradient") {
  Graph g;
  const Variable v = variable(g, "v", constant(g, {{1.f, 2.f}, {3.f, 4.f}}));
  const Output slope = gradients(sum(square(v[{whole, 1}])), {v})[0];
  Interpreter run(g);
  run.init();
  const auto got = run.run({v[1], v[{whole, 0}], slope});
  CHECK(Tensor::same(got[0], Tensor::of<float>({2}, {3, 4})));
  CHECK(Tensor::same(got[1], Tensor::of<float>({2}, {1, 3})));
  CHECK(Tensor::same(got[2], Tensor::of<float>({2, 2}, {0, 4, 0, 8})));
}

TEST_CASE("a variable is assigned a number, which counts for each element") {
  Graph g;
  const Variable v = variable(g, "v", {1.f, 2.f}), steps = variable(g, "steps", 0);
  const Variable flag = variable(g, "flag", false);
  Interpreter run(g);
  run.init();
  run.run({}, {assign_add(v, 3), assign_add(steps, 2), assign(flag, true)});
  CHECK(Tensor::same(run.variable(v), Tensor::of<float>({2}, {4, 5})));
  CHECK(run.variable(flag).item<bool>());
  run.run({}, {assign_sub(v, 0.5), assign_sub(steps, 5)});
  CHECK(Tensor::same(run.variable(v), Tensor::of<float>({2}, {3.5f, 4.5f})));
  CHECK(run.variable(steps).item<std::int32_t>() == -3);
  run.run({}, {assign(v, 0)});
  CHECK(Tensor::same(run.variable(v), Tensor::of<float>({2}, {0, 0})));
  const Variable none;
  check_refused({
      {"1.5 is no i32", [&] { assign_add(steps, 1.5); }},
      {"assign: the variable is empty", [&] { assign(none, 1); }},
  });
}

TEST_CASE("one network becomes a copy of another, or follows it, behind what trains it") {
  Graph g;
  TwoLayers net{g.scope("net")}, copy{g.scope("copy")}, slow{g.scope("slow")};
  const Op raise = group(g, {assign_add(net.a.weights(), 1), assign_add(net.b.bias(), 2)});
  const auto of = net.parameters();
  const Op copied = assign(copy.parameters(), of), behind = assign(copy.parameters(), of, {raise});
  const Op follow = move_average(slow.parameters(), 0.25, of, {raise});
  Interpreter run(g);
  run.init();
  CHECK(!all_same(values_in(run, copy.parameters()), values_in(run, of)));
  run.run({}, {copied});
  CHECK(all_same(values_in(run, copy.parameters()), values_in(run, of)));
  // Writes take effect in the order of their edges: see the session's test for the values behind.
  for (const Op& op : {behind, follow}) {
    std::size_t reads = 0;
    for (const NodeDef& node : g.def().nodes)
      reads += node.op == "ReadVariable" && node.control == std::vector<NodeId>{raise.node()};
    CHECK(reads == 2 * of.size());
    CHECK(g.node(op.node()).control.size() == of.size());
  }
  const std::vector<Variable> none, empty{Variable()};
  check_refused({
      {"assign: 4 variables from 0 others", [&] { assign(copy.parameters(), none); }},
      {"assign: 0 variables from 0 others", [&] { assign(none, none); }},
      {"move_average: 4 variables from 1 others",
       [&] { move_average(copy.parameters(), 0.5, empty); }},
      {"assign: other variable 0 is empty", [&] { assign({net.a.bias()}, empty); }},
      {"assign: variable 0 is empty", [&] { assign(empty, {net.a.bias()}); }},
  });
}
