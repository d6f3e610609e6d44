// Functions of a graph: bodies under construction, calls, and what lowering makes of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "graph/control/functions/body.hpp"
#include "graph/control/functions/recursion.hpp"
#include "graph/control/lowering/frames.hpp"
#include "graph/control/lowering/lower.hpp"
#include "graph/import.hpp"
#include "graph/print.hpp"
#include "tests/graph/sample_ops.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;

namespace {

constexpr const char* kHere = "functions_test.cpp";

// A function of one f32 scalar: x * x + what `more` adds to it.
FunctionRecord* square(GraphBuilder& g, const Output& more = {}) {
  Body body(g, "square", {kHere, 10});
  Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
  Output y = g.add("Mul", {x, x});
  if (!more.empty()) y = g.add("Add", {y, more});
  throw_if_error(body.returns({y}));
  return value_or_throw(body.finish());
}

Op call(GraphBuilder& g, const std::string& function, std::vector<Output> inputs) {
  return g.add(NodeSpec{.op = "Call",
                        .inputs = std::move(inputs),
                        .attrs = {{"function", function}},
                        .name = function,
                        .site = {kHere, 20}});
}

Output scalar(GraphBuilder& g, const char* name, int line = 1) {
  return sample::placeholder(g, name, PartialShape::scalar(), DType::f32,
                             {kHere, std::uint32_t(line)});
}

StepGraph step_of(const GraphBuilder& g, std::vector<Output> fetches,
                  std::vector<Op> targets = {}) {
  StepGraph step;
  step.graph = g.def();
  for (const Output& o : fetches) step.fetches.push_back(o.port());
  for (const Op& o : targets) step.targets.push_back(o.node());
  return step;
}

Target target_of(const OpRegistry& ops) {
  Target target;
  target.ops = &ops;
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  return target;
}

const NodeDef& named(const GraphDef& graph, std::string_view name) {
  const NodeId id = graph.find(name);
  REQUIRE_MESSAGE(id != kNoNode, "no node '" << name << "' in\n" << to_text(graph));
  return graph.nodes[id];
}
std::vector<std::string> control_of(const GraphDef& graph, std::string_view name) {
  std::vector<std::string> out;
  for (NodeId c : named(graph, name).control) out.push_back(graph.nodes[c].name);
  return out;
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("while a body is open, nodes of the graph go there, and values around it are arguments") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  FunctionRecord* record = square(g, a);
  REQUIRE(g.def().functions.size() == 1);
  const FunctionDef& f = g.def().functions[0];
  CHECK(g.def().nodes.size() == 1);
  CHECK(f.name == "square");
  REQUIRE(f.arguments.size() == 2);
  CHECK(f.nodes[f.arguments[0]].name == "x");
  CHECK(f.nodes[f.arguments[1]].name == "arguments/a");
  REQUIRE(record->body->body()->captured.size() == 1);
  CHECK(record->body->body()->captured[0].is(a));
  CHECK(f.result_types == std::vector{DType::f32});
  CHECK(f.result_shapes == std::vector{PartialShape::scalar()});
}

TEST_CASE("a value that a body takes twice is one argument, in order of first use") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a"), b = scalar(g, "b");
  Body body(g, "f", {});
  Output sum = g.add("Add", {b, a});
  sum = g.add("Add", {sum, b});
  throw_if_error(body.returns({sum, a}));
  REQUIRE(body.captured().size() == 2);
  CHECK(body.captured()[0].is(b));
  CHECK(body.captured()[1].is(a));
}

TEST_CASE("a body inside a body takes values of the graph through the one around it") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  Body outer(g, "outer", {});
  {
    Body inner(g, "inner", {});
    throw_if_error(inner.returns({g.add("Neg", {a})}));
    throw_if_error(inner.finish().status());
  }
  CHECK(outer.captured().size() == 1);
  throw_if_error(outer.returns({a}));
  throw_if_error(outer.finish().status());
  CHECK(g.def().functions.size() == 2);
  CHECK(g.def().nodes.size() == 1);
}

TEST_CASE("a value of a finished body, used elsewhere, is refused with both lines") {
  GraphBuilder g(sample::ops());
  Output kept;
  {
    Body body(g, "f", {kHere, 33});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    kept = g.add("Neg", {x}, {}, {kHere, 34});
    throw_if_error(body.returns({kept}));
    throw_if_error(body.finish().status());
  }
  Output a = scalar(g, "a");
  for (auto inputs : {std::vector{a, kept}, std::vector{kept, a}}) {
    auto made = inputs[0].graph().try_add({.op = "Add", .inputs = inputs, .site = {kHere, 40}});
    REQUIRE(made.status().code() == Code::invalid_argument);
    CHECK_MESSAGE(has(made.status().text(), "functions_test.cpp:34"), made.status().text());
    CHECK_MESSAGE(has(made.status().text(), "functions_test.cpp:40"), made.status().text());
  }
}

TEST_CASE("a body that is not finished leaves the graph as it was") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  const std::string before = to_text(g.def());
  {
    Body outer(g, "outer", {});
    Output x = g.add("Neg", {a});
    g.add(NodeSpec{.op = "Variable", .attrs = {{"dtype", DType::f32}, {"shape", PartialShape{}}}});
    Body inner(g, "inner", {});
    throw_if_error(inner.returns({g.add("Add", {x, a})}));
    throw_if_error(inner.finish().status());
    CHECK(g.def().functions.size() == 1);
  }
  CHECK(g.def().functions.empty());
  CHECK(to_text(g.def()) == before);
  CHECK(g.function("inner") == nullptr);
  square(g);  // and it goes on
  CHECK(g.def().functions.size() == 1);
}

TEST_CASE("handles are made in the graph, and a body takes them as arguments") {
  GraphBuilder g(sample::ops());
  Body body(g, "f", {});
  Output v = g.add(NodeSpec{.op = "Variable",
                            .attrs = {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}},
                            .name = "v"})
                 .output();
  CHECK(&v.graph() == &body.graph());
  Output read = g.add("ReadVariable", {v}, {{"dtype", DType::f32}});
  throw_if_error(body.returns({read}));
  throw_if_error(body.finish().status());
  REQUIRE(g.def().nodes.size() == 1);
  CHECK(g.def().nodes[0].op == "Variable");
  const FunctionDef& f = g.def().functions[0];
  const NodeDef& argument = f.nodes[f.arguments[0]];
  CHECK(argument.op == "Variable");
  CHECK(*argument.attrs.at("shared_name").get<std::string>() == "v");
}

TEST_CASE("a call of what does not fit is refused with the function's line") {
  GraphBuilder g(sample::ops());
  square(g);
  auto refused = [&](NodeSpec spec, std::string_view why) {
    auto made = g.try_add(std::move(spec));
    REQUIRE(!made.ok());
    CHECK_MESSAGE(has(made.status().text(), why), made.status().text());
  };
  Output wide = sample::placeholder(g, "wide", {3});
  Output whole = sample::placeholder(g, "whole", PartialShape::scalar(), DType::i32);
  const AttrMap attrs{{"function", "square"}};
  refused({.op = "Call", .inputs = {wide}, .attrs = attrs}, "functions_test.cpp:10");
  refused({.op = "Call", .inputs = {wide}, .attrs = attrs}, "f32[3] is passed");
  refused({.op = "Call", .inputs = {whole}, .attrs = attrs}, "i32[] is passed");
  refused({.op = "Call", .attrs = attrs}, "takes 1 arguments, not 0");
  refused({.op = "Call", .attrs = {{"function", "cube"}}}, "no function 'cube'");
  refused({.op = "Call", .attrs = {}}, "names no function");
}

TEST_CASE("branches that do not agree are refused with the lines of both") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a", 50);
  Output p = sample::placeholder(g, "p", PartialShape::scalar(), DType::bool_);
  {
    Body body(g, "with_a", {kHere, 50});
    throw_if_error(body.returns({a}));
    throw_if_error(body.capture({a}));
    throw_if_error(body.finish().status());
  }
  {
    Body body(g, "with_b", {kHere, 51});
    value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "unused"));
    Output c = g.add(NodeSpec{.op = "Const",
                              .attrs = {{"T", DType::i32}, {"value", Tensor::scalar(1)}},
                              .site = {kHere, 52}})
                   .output();
    throw_if_error(body.returns({c}));
    throw_if_error(body.finish().status());
  }
  auto made = g.try_add({.op = "If",
                         .inputs = {p, a},
                         .attrs = {{"then_branch", "with_a"}, {"else_branch", "with_b"}}});
  REQUIRE(made.status().code() == Code::invalid_argument);
  CHECK_MESSAGE(has(made.status().text(), "functions_test.cpp:50"), made.status().text());
  CHECK_MESSAGE(has(made.status().text(), "functions_test.cpp:52"), made.status().text());
}

TEST_CASE("a call becomes the nodes of its function, named after the call") {
  GraphBuilder g(sample::ops());
  square(g);
  Output a = scalar(g, "a");
  Op one = call(g, "square", {a}), two = call(g, "square", {one.output()});
  StepGraph step = step_of(g, {two.output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  REQUIRE(lower(step, target_of(sample::ops())).ok());
  CHECK(step.graph.functions.empty());
  CHECK(named(step.graph, "square/Mul").op == "Mul");
  CHECK(step.fetches[0] == Port{step.graph.find("square_1/Mul"), 0});
  CHECK(named(step.graph, "square_1/Mul").inputs[0].node == step.graph.find("square/Mul"));
}

TEST_CASE("a call that returns what is fed is fetched as a node of its own") {
  GraphBuilder g(sample::ops());
  {
    Body body(g, "same", {kHere, 30});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    throw_if_error(body.returns({x}));
    throw_if_error(body.finish().status());
  }
  call(g, "same", {scalar(g, "a")});
  CompileRequest request;
  request.feeds = {{"a", 0, false}};
  request.fetches = {{"same", 0, false}};
  auto compiled = compile(g.def(), request, target_of(sample::ops()));
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  REQUIRE(compiled->plans.size() == 1);
  CHECK(compiled->plans[0].nodes.size() == 1);
}

TEST_CASE("what a call comes after, its nodes come after") {
  GraphBuilder g(sample::ops());
  square(g);
  Output a = scalar(g, "a");
  Op before = g.add(NodeSpec{.op = "NoOp", .name = "before"});
  Op made = g.add(NodeSpec{.op = "Call",
                           .inputs = {a},
                           .attrs = {{"function", "square"}},
                           .name = "f",
                           .control = {before}});
  Op after = g.add(NodeSpec{.op = "NoOp", .name = "after", .control = {made}});
  StepGraph step = step_of(g, {}, {after});
  step.graph.nodes[a.node()].op = kFeedOp;
  REQUIRE(lower(step, target_of(sample::ops())).ok());
  CHECK(control_of(step.graph, "f/Mul") == std::vector<std::string>{"before"});
  CHECK(control_of(step.graph, "after") == std::vector<std::string>{"f/done"});
  const auto done = control_of(step.graph, "f/done");
  CHECK(std::count(done.begin(), done.end(), "f/Mul") == 1);
}

namespace {

// f(x) = h(x) and h(y) = op(f(y)).
void call_each_other(GraphBuilder& g, const char* op = "Neg") {
  const ValueType type{DType::f32, PartialShape::scalar()};
  Body f(g, "f", {kHere, 60});
  Output x = value_or_throw(f.argument(type, "x"));
  f.declare({type});
  {
    Body h(g, "h", {kHere, 61});
    Output y = value_or_throw(h.argument(type, "y"));
    throw_if_error(h.returns({g.add(op, {call(g, "f", {y}).output()})}));
    throw_if_error(h.finish().status());
  }
  throw_if_error(f.returns({call(g, "h", {x}).output()}));
  throw_if_error(f.finish().status());
}

}  // namespace

TEST_CASE("functions that call each other are there once for a call from outside") {
  GraphBuilder g(sample::ops());
  call_each_other(g);
  Output a = scalar(g, "a");
  StepGraph step = step_of(g, {call(g, "f", {a}).output(), call(g, "h", {a}).output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  throw_if_error(lower(step, target_of(sample::ops())));
  CHECK(step.graph.functions.empty());
  CHECK(named(step.graph, "f/begin").op == kFunctionBodyOp);
  CHECK(named(step.graph, "f/return").op == kFunctionReturnOp);
  CHECK(named(step.graph, "f/body/h").op == kInvokeOp);
  CHECK(named(step.graph, "f/body_1/f").op == kInvokeOp);
  CHECK(named(step.graph, "f/body_1/Neg").inputs[0].node == step.graph.find("f/body_1/f"));
  CHECK(step.fetches[0] == Port{step.graph.find("f/return"), 0});
  CHECK(step.fetches[1] == Port{step.graph.find("h/return"), 0});
  const auto bodies = std::count_if(step.graph.nodes.begin(), step.graph.nodes.end(),
                                    [](const NodeDef& n) { return n.op == kFunctionBodyOp; });
  CHECK(bodies == 4);
  const Frames frames = value_or_throw(find_frames(step.graph, sample::ops()));
  REQUIRE(frames.frames.size() == 5);
  CHECK(frames.frames[1].leader == 1);
  CHECK(frames.frames[2].leader == 1);
  CHECK(frames.frames[2].parent == 1);
  CHECK(frames.called_by(step.graph.find("f/body/h"), 1) == 2);
  CHECK(frames.called_by(step.graph.find("f/body_1/f"), 0) == 1);
}

TEST_CASE("a function that takes itself for a branch is refused by name") {
  GraphBuilder g(sample::ops());
  call_each_other(g);
  Output a = scalar(g, "a");
  StepGraph step = step_of(g, {call(g, "f", {a}).output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  FunctionDef& f = step.graph.functions[0];
  REQUIRE(f.name == "f");
  NodeDef& inner = f.nodes[f.results[0].node];
  inner.op = "If";
  inner.attrs.erase("function");
  inner.attrs.emplace("then_branch", Attr(std::string("f")));
  inner.attrs.emplace("else_branch", Attr(std::string("h")));
  inner.inputs.insert(inner.inputs.begin(), inner.inputs[0]);
  const Status s = lower(step, target_of(sample::ops()));
  CHECK(s.code() == Code::unimplemented);
  CHECK_MESSAGE(has(s.text(), "function 'f' (functions_test.cpp:60) calls itself"), s.text());
}

TEST_CASE("a handle is bound, not passed, where a function calls itself") {
  GraphBuilder g(sample::ops());
  {
    Body f(g, "f", {kHere, 60});
    Output v = value_or_throw(f.argument({DType::resource, PartialShape::unknown()}, "v"));
    f.declare({});
    call(g, "f", {v});
    throw_if_error(f.returns({}));
    throw_if_error(f.finish().status());
  }
  Output v = g.add(NodeSpec{.op = "Variable",
                            .attrs = {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}},
                            .name = "v"})
                 .output();
  StepGraph step = step_of(g, {}, {call(g, "f", {v})});
  throw_if_error(lower(step, target_of(sample::ops())));
  for (const NodeDef& node : step.graph.nodes) {
    CAPTURE(node.name);
    CHECK(node.inputs.empty());
  }
}

TEST_CASE("what an earlier call saved is not handed on beside what a later one did") {
  GraphBuilder g(sample::ops());
  call_each_other(g);
  const ValueType handle{DType::resource, PartialShape::unknown()};
  {
    Body takes(g, "takes", {kHere, 63});
    throw_if_error(takes.argument(handle, "saved").status());
    throw_if_error(takes.returns({}));
    throw_if_error(takes.finish().status());
  }
  {
    Body passes(g, "passes", {kHere, 64});
    Output one = value_or_throw(passes.argument(handle, "one"));
    throw_if_error(passes.argument(handle, "two").status());
    call(g, "takes", {one});
    throw_if_error(passes.returns({}));
    throw_if_error(passes.finish().status());
  }
  Output a = scalar(g, "a");
  Op one = call(g, "f", {a}), two = call(g, "f", {a});
  StepGraph step = step_of(g, {}, {call(g, "passes", {one.output(1), two.output(1)})});
  step.graph.nodes[a.node()].op = kFeedOp;
  const Status s = lower(step, target_of(sample::ops()));
  CHECK(s.code() == Code::invalid_argument);
  CHECK_MESSAGE(has(s.text(), "hands on what another call saved"), s.text());
}

TEST_CASE("a function that calls itself runs on one device, which its call names") {
  for (bool elsewhere : {false, true}) {
    GraphBuilder g(sample::ops());
    const ValueType type{DType::f32, PartialShape::scalar()};
    {
      Body f(g, "f", {kHere, 60});
      Output x = value_or_throw(f.argument(type, "x"));
      f.declare({type});
      Output y = g.add(NodeSpec{.op = "Neg",
                                .inputs = {x},
                                .name = "elsewhere",
                                .device = elsewhere ? "/cpu:1" : "",
                                .site = {kHere, 62}})
                     .output();
      throw_if_error(f.returns({call(g, "f", {y}).output()}));
      throw_if_error(f.finish().status());
    }
    Output a = scalar(g, "a");
    Op made = g.add(NodeSpec{.op = "Call",
                             .inputs = {a},
                             .attrs = {{"function", "f"}},
                             .name = "f",
                             .device = "/cpu:0"});
    Target target = target_of(sample::ops());
    target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:1")});
    target.soft_placement = false;
    const auto compiled =
        compile(g.def(), {.feeds = {{"a", 0}}, .fetches = {{made.name(), 0}}}, target);
    if (!elsewhere) {
      REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
      REQUIRE(compiled->plans.size() == 1);
      CHECK(compiled->plans[0].frames.size() == 2);
      continue;
    }
    CHECK(!compiled.ok());
    const std::string text = compiled.status().text();
    CHECK_MESSAGE(has(text, "functions_test.cpp:62"), text);
    CHECK_MESSAGE(has(text, "cpu:1"), text);
  }
}

TEST_CASE("functions that call each other or not: which calls themselves, as a search says") {
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const std::size_t n = 1 + random() % 12;
    std::vector<std::vector<bool>> reaches(n, std::vector<bool>(n, false));
    std::vector<FunctionDef> functions(n);
    for (std::size_t f = 0; f < n; ++f) functions[f].name = "f" + std::to_string(f);
    for (std::size_t e = random() % (2 * n); e > 0; --e) {
      const std::size_t from = random() % n, to = random() % n;
      reaches[from][to] = true;
      NodeDef node;
      node.op = "Call";
      node.attrs.emplace("function", Attr(functions[to].name));
      functions[from].nodes.push_back(std::move(node));
    }
    for (std::size_t k = 0; k < n; ++k)
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < n; ++j)
          if (reaches[i][k] && reaches[k][j]) reaches[i][j] = true;
    const Recursion found = find_recursion(functions, sample::ops());
    for (std::size_t f = 0; f < n; ++f) CHECK(found.calls_itself[f] == reaches[f][f]);
  }
}

TEST_CASE("functions that double with each level end at a limit that names one of them") {
  GraphBuilder g(sample::ops());
  std::string last;
  {
    Body body(g, "pair", {kHere, 70});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    for (const char* device : {"/job:w/task:0", "/job:w/task:1"}) {
      auto there = g.with_device(device);
      x = g.add("Square", {x});
    }
    throw_if_error(body.returns({x}));
    throw_if_error(body.finish().status());
    last = body.name();
  }
  for (int level = 0; level < 40; ++level) {
    Body body(g, "level", {kHere, 70});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    x = call(g, last, {call(g, last, {x}).output()}).output();
    throw_if_error(body.returns({x}));
    throw_if_error(body.finish().status());
    last = body.name();
  }
  Output a = scalar(g, "a");
  StepGraph step = step_of(g, {call(g, last, {a}).output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  const Status s = lower(step, target_of(sample::ops()));
  CHECK(s.code() == Code::resource_exhausted);
  CHECK_MESSAGE(has(s.text(), "function "), s.text());
}

TEST_CASE("bodies in bodies without end are refused before the stack is") {
  GraphBuilder g(sample::ops());
  square(g);
  std::string last = "square";
  for (int level = 0; level < 5000; ++level) {
    Body body(g, "level", {kHere, 70});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    throw_if_error(body.returns({call(g, last, {x}).output()}));
    throw_if_error(body.finish().status());
    last = body.name();
  }
  Output a = scalar(g, "a");
  StepGraph step = step_of(g, {call(g, last, {a}).output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  CHECK(lower(step, target_of(sample::ops())).code() == Code::resource_exhausted);
}

TEST_CASE("a function's nodes take the device of the call where they name none") {
  GraphBuilder g(sample::ops());
  {
    Body body(g, "f", {});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    Output y = g.add("Neg", {x});
    auto there = g.with_device("/cpu:1");
    throw_if_error(body.returns({g.add("Square", {y})}));
    throw_if_error(body.finish().status());
  }
  Output a = scalar(g, "a");
  auto task = g.with_device("/job:w/task:3");
  StepGraph step = step_of(g, {call(g, "f", {a}).output()});
  step.graph.nodes[a.node()].op = kFeedOp;
  REQUIRE(lower(step, target_of(sample::ops())).ok());
  CHECK(named(step.graph, "f/Neg").device == "/job:w/task:3");
  CHECK(named(step.graph, "f/Square").device == "/job:w/task:3/cpu:1");
}

TEST_CASE("functions come through import as a builder made them") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  square(g, a);
  g.add(NodeSpec{.op = "Call", .inputs = {a, a}, .attrs = {{"function", "square"}}});
  auto imported = import_graph(g.def(), sample::ops());
  REQUIRE_MESSAGE(imported.ok(), imported.status().text());
  CHECK(to_text(*imported) == to_text(g.def()));
  CHECK(imported->functions[0].nodes.size() == g.def().functions[0].nodes.size());
}

TEST_CASE("a function from outside that is not what it says is refused, and the graph as before") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  square(g, a);
  g.add(NodeSpec{.op = "Call", .inputs = {a, a}, .attrs = {{"function", "square"}}});
  const GraphDef good = g.def();
  auto refused = [&](auto break_it, std::string_view why) {
    GraphDef bad = good;
    break_it(bad.functions[0]);
    GraphImport import(sample::ops());
    const Status s = import.extend(bad.nodes, bad.functions);
    CHECK(!s.ok());
    CHECK_MESSAGE(has(s.text(), why), s.text());
    CHECK(import.graph().functions.empty());
    CHECK_MESSAGE(import.extend(good.nodes, good.functions).ok(), why);
  };
  refused([](FunctionDef& f) { f.arguments[0] = 77; }, "argument is node number 77");
  refused([](FunctionDef& f) { f.arguments[0] = f.arguments[1]; }, "two arguments are one node");
  refused([](FunctionDef& f) { f.arguments[0] = f.results[0].node; }, "is neither an Argument");
  refused([](FunctionDef& f) { f.results[0].index = 3; }, "no output of a node");
  refused([](FunctionDef& f) { f.result_types[0] = DType::i32; }, "not what the function says");
  refused([](FunctionDef& f) { f.result_shapes[0] = {3}; }, "not what the function says");
  refused([](FunctionDef& f) { f.result_shapes.clear(); }, "results");
  refused([](FunctionDef& f) { f.name = "f\n"; }, "no name of a function");
  refused([](FunctionDef& f) { f.nodes[f.results[0].node].op = "Placeholder"; }, "square");
  refused(
      [](FunctionDef& f) {
        f.nodes[f.results[0].node].inputs[0] = {500, 0};
      },
      "node number 500");
  refused([](FunctionDef& f) { f.arguments.pop_back(); }, "none of the function's arguments");
}

TEST_CASE("results that are no nodes are refused before others look at them") {
  GraphBuilder g(sample::ops());
  auto made = [&](const char* name, auto build) {
    Body body(g, name, {kHere, 30});
    Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    throw_if_error(body.returns({build(body, x)}));
    return value_or_throw(body.finish());
  };
  made("one", [&](Body&, Output x) { return g.add("Square", {x}); });
  made("other", [&](Body&, Output x) { return g.add("Neg", {x}); });
  made("outer", [&](Body& body, Output x) {
    Output p = value_or_throw(body.argument({DType::bool_, PartialShape::scalar()}, "p"));
    return g
        .add(NodeSpec{.op = "If",
                      .inputs = {p, x},
                      .attrs = {{"else_branch", "one"}, {"then_branch", "other"}}})
        .output(0);
  });
  GraphDef graph = g.def();
  REQUIRE(graph.functions.back().name == "outer");
  std::rotate(graph.functions.begin(), graph.functions.end() - 1, graph.functions.end());
  REQUIRE(import_graph(graph, sample::ops()).ok());
  FunctionDef& other = graph.functions[2];
  other.results[0].node = 1'000'000;
  other.result_types[0] = DType::i32;  // as no other branch
  const Status s = import_graph(graph, sample::ops()).status();
  CHECK(s.code() == Code::invalid_argument);
  CHECK_MESSAGE(has(s.text(), "result 0 is no output of a node"), s.text());
}

TEST_CASE("a loop whose condition is its body is looked at like any other") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  square(g);
  for (std::int64_t variables : {-1, 0, 1, 2}) {
    auto loop = g.try_add(
        NodeSpec{.op = "While",
                 .inputs = {a},
                 .attrs = {{"cond", "square"}, {"body", "square"}, {"variables", variables}}});
    CHECK_FALSE(loop.ok());
    CHECK_MESSAGE(has(loop.status().text(), "one bool"), loop.status().text());
  }
}

TEST_CASE("functions are printed behind the nodes, as text and for Graphviz") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  square(g, a);
  const std::string text = to_text(g.def()), dot = to_dot(g.def());
  CHECK_MESSAGE(has(text,
                    "\nfunction square(x, arguments/a) returns (Add) # functions_test.cpp:10\n"
                    "  x = Argument()"),
                text);
  CHECK_MESSAGE(has(dot, "label=\"function square\""), dot);
  CHECK_MESSAGE(has(dot, "f0_n0 -> f0_n1"), dot);
}

TEST_CASE("branches are lowered in the paper's words, with a pivot for what takes no value") {
  GraphBuilder g(sample::ops());
  Output a = scalar(g, "a");
  Output p = sample::placeholder(g, "p", PartialShape::scalar(), DType::bool_);
  Output v = g.add(NodeSpec{.op = "Variable",
                            .attrs = {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}},
                            .name = "v"})
                 .output();
  auto body = [&](const char* name, auto make) {
    Body open(g, name, {});
    throw_if_error(open.returns({make()}));
    throw_if_error(open.capture({a, v}));
    return value_or_throw(open.finish());
  };
  body("reads", [&] {
    return g.add("Add", {a, g.add("ReadVariable", {v}, {{"dtype", DType::f32}})});
  });
  body("constant", [&] { return sample::constant(g, Tensor::scalar(1.0f)); });
  Op made = g.add(NodeSpec{.op = "If",
                           .inputs = {p, a, v},
                           .attrs = {{"then_branch", "reads"}, {"else_branch", "constant"}},
                           .name = "cond"});
  StepGraph step = step_of(g, {made.output()});
  for (Output fed : {a, p}) step.graph.nodes[fed.node()].op = kFeedOp;
  REQUIRE(lower(step, target_of(sample::ops())).ok());
  const GraphDef& graph = step.graph;
  CHECK(named(graph, "cond/Switch").op == "Switch");
  CHECK(graph.nodes[step.fetches[0].node].op == "Merge");
  CHECK(control_of(graph, "cond/then/ReadVariable") == std::vector<std::string>{"cond/pivot_1"});
  CHECK(control_of(graph, "cond/then/Add").empty());    // it takes the value from a Switch
  CHECK(control_of(graph, "cond/else/Const").empty());  // its reader dies
  CHECK(control_of(graph, "cond/result") == std::vector<std::string>{"cond/pivot_0"});
  CHECK(step.targets.empty());  // nothing has an effect
}

TEST_CASE("gradients of functions that would be more than there is time for are refused") {
  const auto gradient = [](int levels, int calls) {
    GraphBuilder g(sample::ops());
    std::string inner = square(g)->body->body()->function;
    for (int level = 0; level < levels; ++level) {
      Body body(g, "f", {kHere, 30});
      Output x = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
      for (int i = 0; i < calls; ++i) x = call(g, inner, {x}).output();
      throw_if_error(body.returns({x}));
      inner = value_or_throw(body.finish())->body->body()->function;
    }
    const Output x = scalar(g, "x"), y = call(g, inner, {x}).output();
    const std::size_t nodes = g.def().nodes.size(), functions = g.def().functions.size();
    const Status status = gradients(std::vector{y}, std::vector{x}).status();
    if (!status.ok()) {
      CHECK(status.code() == Code::resource_exhausted);
      CHECK(status.text().find("functions_test.cpp:20") != std::string::npos);
      CHECK(g.def().nodes.size() == nodes);
      CHECK(g.def().functions.size() == functions);
    }
    return status;
  };
  CHECK(gradient(3, 2).ok());
  CHECK(gradient(20, 1).ok());
  CHECK(gradient(40, 2).message().find("a copy of each function") != std::string::npos);
  CHECK(gradient(3000, 1).message().find("deep") != std::string::npos);
}
