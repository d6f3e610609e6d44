// Loops and branches of a lowered step: what is in a frame, and what goes to which device.
#include "graph/control/lowering/frames.hpp"

#include <doctest/doctest.h>

#include <functional>

#include "graph/compile.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/control/lowering/lower.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

constexpr const char* kHere = "/job:w/task:0";
constexpr const char* kThere = "/job:w/task:1";

Target two_devices() {
  Target target;
  target.ops = &sample::ops();
  for (const char* device : {"/job:w/task:0/cpu:0", "/job:w/task:1/cpu:0"})
    target.devices.push_back({*DeviceName::parse(device)});
  return target;
}

Output scalar(GraphBuilder& g, const char* name, DType type = DType::f32) {
  return sample::placeholder(g, name, PartialShape::scalar(), type);
}

Output on(GraphBuilder& g, const char* device, std::string op, std::vector<Output> inputs) {
  auto there = g.with_device(device);
  return g.add(NodeSpec{.op = std::move(op), .inputs = std::move(inputs)}).output();
}

// A function of x and p.
std::string function(GraphBuilder& g, const char* name, const Output& x, const Output& p,
                     const std::function<Output(Output x)>& make, bool of_loop) {
  Body body(g, name, {});
  Output value = x;
  if (of_loop) {
    body.repeat();
    value = value_or_throw(body.argument({x.dtype(), x.shape()}, "x"));
  }
  throw_if_error(body.returns({make(value)}));
  throw_if_error(body.capture(of_loop ? std::vector{p} : std::vector{x}));
  throw_if_error(body.finish().status());
  return body.name();
}

// As long as p: x = -x.
Output loop(GraphBuilder& g, const char* device, const char* name, const Output& x,
            const Output& p) {
  const std::string cond = function(
      g, "cond", x, p, [&](Output) { return p; }, true);
  const std::string body = function(
      g, "body", x, p, [&](Output v) { return g.add("Neg", {v}); }, true);
  auto there = g.with_device(device);
  return g
      .add(NodeSpec{.op = "While",
                    .inputs = {x, p},
                    .attrs = {{"cond", cond}, {"body", body}, {"variables", std::int64_t{1}}},
                    .name = name})
      .output();
}

StepGraph lowered(const GraphBuilder& g, std::vector<Output> fetches, std::vector<Output> fed) {
  StepGraph step;
  step.graph = g.def();
  for (const Output& o : fetches) step.fetches.push_back(o.port());
  for (const Output& o : fed) step.graph.nodes[o.node()].op = kFeedOp;
  throw_if_error(lower(step, two_devices()));
  return step;
}

NodeId named(const GraphDef& graph, std::string_view name) {
  const NodeId id = graph.find(name);
  REQUIRE_MESSAGE(id != kNoNode, name);
  return id;
}

}  // namespace

TEST_CASE("a loop on one device of two has no channel but those of its inputs and results") {
  GraphBuilder g(sample::ops());
  Output x = scalar(g, "x"), p = scalar(g, "p", DType::bool_);
  Output made = on(g, kThere, "Neg", {x});
  Output last = loop(g, kHere, "while", made, p);
  Output used = on(g, kThere, "Square", {last});
  CompileRequest request;
  for (const Output& fed : {x, p}) request.feeds.push_back(*PortName::parse(fed.name()));
  request.fetches.push_back(*PortName::parse(used.name()));
  auto compiled = compile(g.def(), request, two_devices());
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  REQUIRE(compiled->plans.size() == 2);
  CHECK(compiled->channels.size() == 2);
  for (const Plan& plan : compiled->plans)
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
      if (plan.nodes[i].role == Role::send || plan.nodes[i].role == Role::recv)
        CHECK(plan.nodes[i].frame == 0);
}

TEST_CASE("a node that takes something across the edge of a loop is refused by name") {
  GraphBuilder g(sample::ops());
  Output x = scalar(g, "x"), p = scalar(g, "p", DType::bool_);
  Output a = loop(g, kHere, "a", x, p), b = loop(g, kHere, "b", x, p);
  const StepGraph step = lowered(g, {a, b}, {x, p});
  const NodeId in_a = named(step.graph, "a/body/Neg"), in_b = named(step.graph, "b/body/Neg");
  REQUIRE(find_frames(step.graph, sample::ops()).ok());
  auto refusal = [&](std::vector<Port> inputs, std::vector<NodeId> control) {
    GraphDef graph = step.graph;
    NodeDef node = graph.nodes[in_a];
    node.name = "thief";
    node.op = inputs.size() == 2 ? "Add" : "Neg";
    node.inputs = std::move(inputs);
    node.control = std::move(control);
    graph.nodes.push_back(std::move(node));
    return find_frames(graph, sample::ops()).status();
  };
  CHECK(refusal({{in_a, 0}, {in_a, 0}}, {}).ok());
  for (const Status& refused :
       {refusal({{in_a, 0}, {in_b, 0}}, {}), refusal({{in_a, 0}, step.fetches[0]}, {}),
        refusal({{in_a, 0}}, {in_b}), refusal({step.fetches[0]}, {in_b})}) {
    CHECK(refused.code() == Code::invalid_argument);
    CHECK_MESSAGE(refused.text().find("'thief'") != std::string::npos, refused.text());
    CHECK_MESSAGE(refused.text().find("across the edge of a loop") != std::string::npos,
                  refused.text());
  }
}

TEST_CASE("a value goes down a branch where it is made, a fed one where the branch is") {
  GraphBuilder g(sample::ops());
  Output x = scalar(g, "x"), p = scalar(g, "p", DType::bool_);
  Output made = on(g, kThere, "Neg", {x});
  auto branch = [&](const char* name, const Output& value) {
    const auto taken = [&](Output v) { return g.add("Square", {v}); };
    const auto other = [&](Output v) { return g.add("Neg", {v}); };
    const std::string yes = function(g, "then", value, p, taken, false);
    const std::string no = function(g, "else", value, p, other, false);
    auto here = g.with_device(kHere);
    return g
        .add(NodeSpec{.op = "If",
                      .inputs = {p, value},
                      .attrs = {{"then_branch", yes}, {"else_branch", no}},
                      .name = name})
        .output();
  };
  Output of_made = branch("of_made", made), of_fed = branch("of_fed", x);
  const StepGraph step = lowered(g, {of_made, of_fed}, {x, p});
  CHECK(step.graph.nodes[named(step.graph, "of_made/Switch")].device == kThere);
  CHECK(step.graph.nodes[named(step.graph, "of_fed/Switch")].device == kHere);
  CHECK(step.graph.nodes[named(step.graph, "of_made/then/Square")].device == kHere);
}
