// What it costs to build and to compile branches, calls and loops, and to go backwards through
// them, grows with the graph, not with its square. Counted in bytes allocated: names that are
// tried are long.
#include <doctest/doctest.h>

#include "graph/compile.hpp"
#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "tests/graph/allocated.hpp"

using namespace troupe;

namespace {

Output gradient(Output y, Output x) {
  return value_or_throw(gradients(std::vector{sum(y)}, std::vector{x}))[0];
}

// Branches that the client did not name.
Output branches(Graph& g, int n) {
  Output p = placeholder<bool>(g, PartialShape::scalar(), "p");
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Output y = x;
  for (int i = 0; i < n; ++i)
    y = cond(
        p, [&] { return sin(y); }, [&] { return y; });
  return y;
}

// One function, called in a row.
Output calls(Graph& g, int n) {
  Output x = placeholder<double>(g, PartialShape::scalar(), "x");
  Function f = g.function("wave", {f64_scalar}, {f64_scalar},
                          [](Function&, Output v) { return sin(v) * 2.0; });
  Output y = x;
  for (int i = 0; i < n; ++i) y = f(y);
  return gradient(y, x);
}

// A body whose every node has a value that the way back needs.
Output large_body(Graph& g, int n) {
  Output x = placeholder<double>(g, {2}, "x");
  Output y = while_loop(
      x, [&](Output v) { return sum(v) < 10.0; },
      [&](Output v) {
        for (int i = 0; i < n; ++i) v = sin(v) * x;
        return v;
      });
  return gradient(y, x);
}

// Values from around the loop.
Output many_captures(Graph& g, int n) {
  Output x = placeholder<double>(g, {2}, "x");
  std::vector<Output> around;
  for (int i = 0; i < n; ++i) around.push_back(x + double(i));
  Output y = while_loop(
      x, [&](Output v) { return sum(v) < 10.0; },
      [&](Output v) {
        std::vector<Output> terms{v};
        for (Output a : around) terms.push_back(a * v);
        return add_n(terms);
      });
  return gradient(y, x);
}

Output many_variables(Graph& g, int n) {
  Output x = placeholder<double>(g, {2}, "x");
  std::vector<Variable> around;
  for (int i = 0; i < n; ++i)
    around.push_back(variable(g, "weights", Tensor::zeros(DType::f64, {2}).value()));
  Output y = while_loop(
      x, [&](Output v) { return sum(v) < 10.0; },
      [&](Output v) {
        std::vector<Output> terms{v};
        for (const Variable& w : around) terms.push_back(w * v);
        return add_n(terms);
      });
  return gradient(y, x);
}

std::uint64_t bytes_of(Output (*make)(Graph&, int), int n) {
  const std::uint64_t before = test::allocated_bytes();
  Graph g;
  auto scope = g.with_scope("a_scope_of_some_length");
  const Output y = make(g, n);
  CompileRequest request;
  request.fetches.push_back({g.node(y.node()).name, std::int32_t(y.port().index)});
  for (const NodeDef& node : g.def().nodes)
    if (node.op == "Placeholder") request.feeds.push_back({node.name});
  Target target;
  target.ops = &ops::builtin().ops;
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  auto compiled = compile(g.def(), request, target);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return test::allocated_bytes() - before;
}

}  // namespace

TEST_CASE("twice as many branches, calls or nodes of a loop take twice as much to build") {
  struct Program {
    const char* what;
    Output (*make)(Graph&, int);
  };
  for (const Program& program :
       {Program{"branches", branches}, Program{"calls", calls}, Program{"a large body", large_body},
        Program{"many captures", many_captures}, Program{"many variables", many_variables}}) {
    const std::uint64_t small = bytes_of(program.make, 250);
    const std::uint64_t large = bytes_of(program.make, 500);
    CAPTURE(program.what);
    CAPTURE(small);
    CAPTURE(large);
    CHECK(double(large) < 2.2 * double(small));
  }
}
