// Shapes that functions declare, where less is known before a run: what lowering makes of them, and
// graphs from outside.
#include <doctest/doctest.h>

#include "graph/control/functions/body.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/control/lowering/lower.hpp"
#include "graph/import.hpp"
#include "graph/print.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

const ValueType four{DType::f32, {4}};

// The same value, of whose shape nothing is known.
Output vague(GraphBuilder& g, const Output& x) { return g.add("IdentityN", {x}); }

// f(x) of four numbers.
void define(GraphBuilder& g, bool declared, bool certain) {
  Body body(g, "f", {"f.cpp", 7});
  Output x = value_or_throw(body.argument(four, "x"));
  if (declared) body.declare({four});
  Output y = g.add("Neg", {x}, {}, {"f.cpp", 8});
  if (!certain) y = g.add("IdentityN", {y}, {}, {"f.cpp", 9});
  throw_if_error(body.returns({y}));
  throw_if_error(body.finish().status());
}

Op call(GraphBuilder& g, const Output& x) {
  return g.add(NodeSpec{.op = "Call",
                        .inputs = {x},
                        .attrs = {{"function", std::string("f")}},
                        .name = "f",
                        .site = {"f.cpp", 20}});
}

// The checks in a step that fetches these, after it went over a wire and was lowered.
std::vector<NodeDef> checks(const GraphBuilder& g, const Output& y) {
  StepGraph step;
  step.graph = value_or_throw(import_graph(g.def(), sample::ops()));
  for (NodeDef& node : step.graph.nodes)
    if (node.op == "Placeholder") node.op = kFeedOp;
  step.fetches = {y.port()};
  Target target;
  target.ops = &sample::ops();
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  throw_if_error(lower(step, target));
  std::vector<NodeDef> found;
  for (const NodeDef& node : step.graph.nodes)
    if (node.op == kEnsuredOp) found.push_back(node);
  return found;
}

std::string message(const NodeDef& check) { return *check.attrs.at("message").get<std::string>(); }

}  // namespace

TEST_CASE("what is certain is not checked in a run") {
  GraphBuilder g(sample::ops());
  define(g, true, true);
  CHECK(checks(g, call(g, sample::placeholder(g, "a", {4})).output()).empty());
}

TEST_CASE("an argument of which less is known than is declared is checked, with the call's line") {
  GraphBuilder g(sample::ops());
  define(g, false, true);
  Output a = sample::placeholder(g, "a", PartialShape::unknown());
  const auto found = checks(g, call(g, a).output());
  REQUIRE(found.size() == 1);
  CHECK(message(found[0]) == "argument 0 of function 'f' (f.cpp:7)");
  CHECK(found[0].site == Site{"f.cpp", 20});
  CHECK(*found[0].attrs.at("shape").get<PartialShape>() == PartialShape{4});
}

TEST_CASE("a result of which less is known than is declared is checked, with its own line") {
  GraphBuilder g(sample::ops());
  define(g, true, false);
  Output y = call(g, sample::placeholder(g, "a", {4})).output();
  CHECK(y.shape() == PartialShape{4});
  const auto found = checks(g, y);
  REQUIRE(found.size() == 1);
  CHECK(message(found[0]) == "result 0 of function 'f' (f.cpp:7), 'IdentityN' (f.cpp:9)");
  CHECK(found[0].site == Site{"f.cpp", 9});
}

TEST_CASE("a loop's variable of which less is known is checked at first and each time") {
  GraphBuilder g(sample::ops());
  Output p = sample::placeholder(g, "p", PartialShape::scalar(), DType::bool_);
  auto function = [&](const char* name, bool next) {
    Body body(g, name, {"f.cpp", 30});
    Output x = value_or_throw(body.argument(four, "x"));
    Output again = value_or_throw(body.argument({DType::bool_, PartialShape::scalar()}, "p"));
    if (next)
      throw_if_error(body.returns({vague(g, x), again}));
    else
      throw_if_error(body.returns({again}));
    throw_if_error(body.finish().status());
  };
  function("cond", false);
  function("body", true);
  Op loop = g.add(NodeSpec{.op = "While",
                           .inputs = {sample::placeholder(g, "a", PartialShape::unknown()), p},
                           .attrs = {{"cond", std::string("cond")},
                                     {"body", std::string("body")},
                                     {"variables", std::int64_t{2}}},
                           .name = "while",
                           .site = {"f.cpp", 40}});
  CHECK(loop.output(0).shape() == PartialShape{4});
  const auto found = checks(g, loop.output(0));
  REQUIRE(found.size() == 2);
  CHECK(message(found[0]) == "variable 0 of the loop 'while' (f.cpp:40), at first");
  CHECK(message(found[1]).starts_with(
      "variable 0 of the loop 'while' (f.cpp:40), whose next value is 'IdentityN' ("));
}

TEST_CASE("a graph from outside may declare shapes that only a run knows, and no others") {
  GraphBuilder g(sample::ops());
  define(g, true, false);
  call(g, sample::placeholder(g, "a", PartialShape::unknown()));
  CHECK(import_graph(g.def(), sample::ops()).ok());
  GraphDef wrong = g.def();
  wrong.functions[0].nodes[2].op = "Identity";  // of whose shape something is known, and
  wrong.functions[0].nodes[2].attrs = {{"T", DType::f32}};
  wrong.functions[0].result_shapes = {PartialShape{5}};
  const Status status = import_graph(wrong, sample::ops()).status();
  CHECK(status.code() == Code::invalid_argument);
  CHECK_MESSAGE(status.text().find("is not what the function says") != std::string::npos,
                status.text());
}
