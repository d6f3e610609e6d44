// Variables in loops become values: what the loop begins with, carries, and is followed by.
#include "graph/control/state/state.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "graph/control/control_ops.hpp"
#include "graph/control/functions/body.hpp"
#include "graph/control/state/state_ops.hpp"
#include "tests/graph/allocated.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

const OpRegistry& state_ops() {
  static const OpRegistry registry = [] {
    OpRegistry r;
    auto add = [&](OpDef def) { throw_if_error(r.add(std::move(def))); };
    const External read{.resource = "variable", .verb = "read", .order = External::Order::read};
    const External write{.resource = "variable", .verb = "log", .order = External::Order::write};
    for (OpDef& def : control_ops()) add(std::move(def));
    add({.name = "Placeholder",
         .out = {"value"},
         .attrs = {"T: type"},
         .shape = scalar_shape,
         .role = Role::placeholder});
    add({.name = "Const",
         .out = {"value"},
         .attrs = {"T: type", "value: tensor"},
         .shape = scalar_shape});
    add({.name = "Identity", .in = {"x"}, .out = {"y"}, .shape = same_shape});
    add({.name = "Below", .in = {"x: f32"}, .out = {"y: bool"}, .shape = scalar_shape});
    add({.name = "Variable",
         .out = {"handle: resource"},
         .attrs = {"T: type", "shape: shape", "container: string = ", "shared_name: string = "},
         .shape = sample::attr_shape,
         .stateful = true,
         .role = Role::handle,
         .external = {.resource = "variable"}});
    add({.name = "ReadVariable",
         .in = {"handle: resource"},
         .out = {"value"},
         .attrs = {"T: type"},
         .shape = same_shape,
         .stateful = true,
         .role = Role::external,
         .external = read});
    for (const char* name : {"Assign", "AssignAdd", "Unruly"})
      add({.name = name,
           .in = {"var: resource", "value"},
           .types = "f32",
           .attrs = {"replicas: int = 1"},
           .shape = no_outputs,
           .stateful = true,
           .role = Role::external,
           .external = write});
    add({.name = "_Assign", .in = {"value"}, .out = {"y"}, .types = "f32", .shape = same_shape});
    add({.name = "_AssignAdd",
         .in = {"var", "value"},
         .out = {"y"},
         .types = "f32",
         .shape = same_shape});
    return r;
  }();
  return registry;
}

Target one_device() {
  Target out;
  out.ops = &state_ops();
  return out;
}

Output read(const Output& v) { return v.graph().add("ReadVariable", {v}, {{"T", DType::f32}}); }

// A loop over x that takes the variable.
struct Loop {
  using Make = std::function<Output(GraphBuilder&, const Output& x)>;
  Loop() : g(state_ops()) {
    x = g.add("Placeholder", {}, {{"T", DType::f32}});
    v = g.add(NodeSpec{.op = "Variable",
                       .attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}},
                       .name = "v"})
            .output();
  }
  Op make(const Make& condition, const Make& body, std::vector<Op> control = {}) {
    const std::string cond = function("cond", condition), again = function("body", body);
    return g.add(
        NodeSpec{.op = "While",
                 .inputs = {x, v},
                 .attrs = {{"cond", cond}, {"body", again}, {"variables", std::int64_t{1}}},
                 .name = "while",
                 .control = std::move(control)});
  }
  std::string function(const char* name, const Make& make) {
    Body body(g, name, Site::here());
    body.repeat();
    Output value = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    throw_if_error(body.returns({make(body.graph(), value)}));
    throw_if_error(body.capture({v}));
    throw_if_error(body.finish().status());
    return body.name();
  }
  Expected<StepGraph> threaded(const std::vector<Op>& targets) {
    StepGraph step;
    step.graph = g.def();
    for (const Op& op : targets) step.targets.push_back(op.node());
    TROUPE_TRY(thread_state(step, one_device()));
    return step;
  }

  GraphBuilder g;
  Output x, v;
};

Output below(GraphBuilder& g, const Output& x) { return g.add("Below", {x}); }

Loop::Make writing(const char* op) {
  return [op](GraphBuilder& g, const Output& x) {
    const std::string name = op;
    GraphBuilder& root = g.root();
    g.add(NodeSpec{.op = name, .inputs = {root.find("v").output(), x}, .name = "write"});
    return x;
  };
}

const NodeDef& node(const GraphDef& graph, std::string_view name) {
  const NodeId id = graph.find(name);
  REQUIRE_MESSAGE(id != kNoNode, name);
  return graph.nodes[id];
}
const NodeDef& loop_of(const StepGraph& step) { return node(step.graph, "while"); }
const FunctionDef& body_of(const StepGraph& step) {
  const FunctionDef* f = step.graph.function(*loop_of(step).attrs.at("body").get<std::string>());
  REQUIRE(f != nullptr);
  return *f;
}
const NodeDef& input(const StepGraph& step, std::size_t i) {
  return step.graph.nodes[loop_of(step).inputs[i].node];
}

}  // namespace

TEST_CASE("a loop carries the variable that it writes, and what is written stands behind it") {
  Loop loop;
  const Op made = loop.make(below, writing("AssignAdd"));
  const StepGraph step = value_or_throw(loop.threaded({made}));
  const NodeDef& threaded = loop_of(step);
  // x, the value, whether there was an iteration; the handle.
  CHECK(*threaded.attrs.at("variables").get<std::int64_t>() == 3);
  REQUIRE(threaded.inputs.size() == 4);
  CHECK(threaded.out_types ==
        std::vector<DType>{DType::f32, DType::f32, DType::bool_, DType::resource});
  const FunctionDef& body = body_of(step);
  CHECK(original_function(body.name) == "body");
  CHECK(body.name != "body");
  for (const NodeDef& n : body.nodes) CHECK(op_of(n, state_ops()).def.role != Role::external);
  const auto write = std::find_if(body.nodes.begin(), body.nodes.end(),
                                  [](const NodeDef& n) { return n.name == "write"; });
  REQUIRE(write != body.nodes.end());
  CHECK(write->op == "_AssignAdd");
  CHECK(body.results.size() == 3);
  CHECK(body.results[1].node == NodeId(write - body.nodes.begin()));

  const NodeDef& behind = node(step.graph, "while/write");
  CHECK(behind.op == "If");
  const NodeId id = step.graph.find("while");
  CHECK(behind.inputs[0] == Port{id, 2});
  CHECK(behind.inputs[2] == Port{id, 1});
  const FunctionDef* assigns =
      step.graph.function(*behind.attrs.at("then_branch").get<std::string>());
  REQUIRE(assigns != nullptr);
  CHECK(assigns->nodes.back().op == "Assign");
  CHECK(assigns->nodes.back().attrs.contains(kBehindLoopAttr));
}

TEST_CASE("a loop begins with what it looks at") {
  const Loop::Make reads = [](GraphBuilder& g, const Output&) {
    return read(g.root().find("v").output());
  };
  const Loop::Make condition = [&](GraphBuilder& g, const Output& x) {
    return below(g, reads(g, x));
  };
  auto first = [&](const Loop::Make& cond, const Loop::Make& body) {
    Loop loop;
    const Op made = loop.make(cond, body);
    const StepGraph step = value_or_throw(loop.threaded({made}));
    return input(step, 1).op;
  };
  CHECK(first(below, writing("AssignAdd")) == "Variable");  // once an iteration is to come
  CHECK(first(below, writing("Assign")) == "Const");        // nobody will see it
  CHECK(first(condition, writing("Assign")) == "ReadVariable");
  CHECK(first(below, [&](GraphBuilder& g, const Output& x) {
          writing("Assign")(g, x);
          return reads(g, x);
        }) == "Variable");
}

TEST_CASE(
    "a loop comes after the writes before it, and what uses the variable behind it after it") {
  Loop loop;
  const Op before = loop.g.add(
      NodeSpec{.op = "Assign", .inputs = {loop.v, loop.x}, .name = "before"});  // in node order
  const Op made = loop.make(below, writing("AssignAdd"));
  const Output by_data = loop.g.add("Identity", {made.output()});
  const Op after = loop.g.add(NodeSpec{.op = "Identity", .inputs = {loop.x}, .control = {made}});
  const Op reads = loop.g.add(NodeSpec{.op = "ReadVariable",
                                       .inputs = {loop.v},
                                       .attrs = {{"T", DType::f32}},
                                       .name = "reads",
                                       .control = {Op(by_data)}});
  const StepGraph step = value_or_throw(loop.threaded({before, made, after, reads}));
  auto comes_after = [&](std::string_view name, std::string_view other) {
    const std::vector<NodeId>& control = node(step.graph, name).control;
    return std::count(control.begin(), control.end(), step.graph.find(other)) == 1;
  };
  CHECK(comes_after("while", "before"));
  CHECK(comes_after(after.name(), "while/write"));
  CHECK(comes_after("reads", "while/write"));
  CHECK_FALSE(comes_after(by_data.name(), "while/write"));
}

TEST_CASE(
    "a loop without variables is left as it is; a write without a rule on values is refused") {
  Loop loop;
  const Op made = loop.make(below, [](GraphBuilder&, const Output& x) { return x; });
  const StepGraph step = value_or_throw(loop.threaded({made}));
  CHECK(step.graph.nodes.size() == loop.g.def().nodes.size());
  CHECK(step.graph.functions.size() == loop.g.def().functions.size());

  Loop other;
  const Op refused = other.make(below, writing("Unruly"));
  const Status status = other.threaded({refused}).status();
  CHECK(status.code() == Code::unimplemented);
  CHECK_MESSAGE(status.text().find("its rule is for variables alone") != std::string::npos,
                status.text());
}

namespace {

// Functions that each call the next one twice, the second time with two variables in each other's
// place; the last one does `last`. So there are as many ways to call that as there are orders.
struct Orders {
  using Make = std::function<void(GraphBuilder&, const Output& x, const std::vector<Output>& v)>;
  Orders(int levels, int variables, const Make& last) : g(state_ops()) {
    x = g.add("Placeholder", {}, {{"T", DType::f32}});
    for (int i = 0; i < variables; ++i)
      v.push_back(g.add(NodeSpec{.op = "Variable",
                                 .attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}},
                                 .name = "v" + std::to_string(i)})
                      .output());
    std::string inner = function([&] { last(g, x, v); });
    for (int level = 0; level < levels; ++level)
      inner = function([&] {
        std::vector<Output> other = v;
        const std::size_t one = std::size_t(2 * level) % (v.size() - 1);
        std::swap(other[one], other[one + 1]);
        call(inner, v);
        call(inner, other);
      });
    outermost = call(inner, v);
  }
  Op call(const std::string& name, std::vector<Output> passed) {
    passed.insert(passed.begin(), x);
    return g.add(NodeSpec{.op = "Call", .inputs = passed, .attrs = {{"function", name}}});
  }
  std::string function(const std::function<void()>& make) {
    Body body(g, "f", Site::here());
    g.add("Identity", {x});
    for (const Output& each : v) read(each);  // the order of the arguments
    make();
    throw_if_error(body.returns({}));
    throw_if_error(body.finish().status());
    return body.name();
  }
  Expected<StepGraph> threaded() {
    StepGraph step;
    step.graph = g.def();
    step.targets = {outermost.node()};
    TROUPE_TRY(thread_state(step, one_device()));
    return step;
  }
  std::uint64_t bytes_to_thread() {
    const std::uint64_t before = test::allocated_bytes();
    REQUIRE(threaded().ok());
    return test::allocated_bytes() - before;
  }

  GraphBuilder g;
  Output x;
  std::vector<Output> v;
  Op outermost;
};

void write_one(GraphBuilder& g, const Output& x, const std::vector<Output>& v) {
  g.add(NodeSpec{.op = "Assign", .inputs = {v[0], x}});
}

void repeat(GraphBuilder& g, const Output& x, const std::vector<Output>& v) {
  const auto part = [&](const char* name, bool again) {
    Body body(g, name, Site::here());
    body.repeat();
    Output value = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    if (again) g.add(NodeSpec{.op = "Assign", .inputs = {v[0], value}});
    throw_if_error(body.returns({again ? value : below(g, value)}));
    throw_if_error(body.capture({v[0]}));
    throw_if_error(body.finish().status());
    return body.name();
  };
  const std::string cond = part("cond", false), again = part("body", true);
  g.add(NodeSpec{.op = "While",
                 .inputs = {x, v[0]},
                 .attrs = {{"cond", cond}, {"body", again}, {"variables", std::int64_t{1}}}});
}

}  // namespace

TEST_CASE("functions that pass variables on in any order are looked at once each") {
  const std::uint64_t few = Orders(6, 12, write_one).bytes_to_thread();
  const std::uint64_t more = Orders(12, 24, write_one).bytes_to_thread();
  CHECK_MESSAGE(more < 16 * few, more, " bytes instead of ", few);
  CHECK(Orders(40, 80, write_one).threaded().ok());
}

TEST_CASE("loops for more orders of variables than there is time for are refused") {
  CHECK(Orders(3, 8, repeat).threaded().ok());
  Orders many(30, 8, repeat);
  const Status status = many.threaded().status();
  CHECK(status.code() == Code::resource_exhausted);
  CHECK_MESSAGE(status.message().find("for each combination of variables") != std::string::npos,
                status.text());
  CHECK(status.site().known());
}

TEST_CASE("a function with a loop is called with as many variables as there are calls") {
  Orders o(0, 1, repeat);
  Body body(o.g, "f", Site::here());
  Output y = o.x;
  for (int i = 0; i < 60; ++i) y = o.g.add("Identity", {y});
  read(o.v[0]);
  repeat(o.g, y, o.v);
  throw_if_error(body.returns({}));
  throw_if_error(body.finish().status());
  StepGraph step;
  for (int i = 0; i < 500; ++i) {
    const Output v =
        o.g.add(NodeSpec{.op = "Variable",
                         .attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}},
                         .name = "w" + std::to_string(i)})
            .output();
    step.targets.push_back(
        o.g.add(NodeSpec{.op = "Call", .inputs = {o.x, v}, .attrs = {{"function", body.name()}}})
            .node());
  }
  step.graph = o.g.def();
  const Status status = thread_state(step, one_device());
  CHECK_MESSAGE(status.ok(), status.text());
}
