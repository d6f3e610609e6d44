// Loops of a client's own: which become a While, and what else is refused.
#include "graph/control/paper_loops/raise.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "graph/control/functions/body.hpp"
#include "graph/control/functions/ops.hpp"
#include "graph/gradients.hpp"
#include "graph/import.hpp"
#include "graph/passes/feeds.hpp"
#include "graph/print.hpp"
#include "tests/graph/paper_loop.hpp"
#include "tests/graph/sample_ops.hpp"

namespace troupe::test::raising {
namespace {

constexpr const char* kHere = "raise_test.cpp";

Target target_here() {
  Target target;
  target.ops = &sample::ops();
  target.devices.push_back({*DeviceName::parse("/job:w/task:0/cpu:0")});
  return target;
}

Output scalar(GraphBuilder& g, const char* name, DType type = DType::f32) {
  return sample::placeholder(g, name, PartialShape::scalar(), type, {kHere, 1});
}

// What a fetch needs, with its loops raised.
Expected<StepGraph> raised(const GraphBuilder& g, const std::vector<Output>& fetches) {
  CompileRequest request;
  for (const NodeDef& node : g.def().nodes)
    if (node.op == "Placeholder") request.feeds.push_back({node.name, 0, false});
  for (const Output& fetch : fetches)
    request.fetches.push_back({g.node(fetch.node()).name, int(fetch.port().index), false});
  GraphIndex index;
  TROUPE_TRY(index.extend(g.def(), sample::ops()));
  TROUPE_TRY(StepGraph step, feed_and_fetch(g.def(), index, request, sample::ops()));
  TROUPE_TRY(prune(step, target_here()));
  TROUPE_TRY(raise_loops(step, target_here()));
  // It goes all the way.
  TROUPE_TRY(compile(value_or_throw(import_graph(g.def(), sample::ops())), request, target_here()));
  return step;
}

const NodeDef& named(const std::vector<NodeDef>& nodes, std::string_view name) {
  const auto at = std::find_if(nodes.begin(), nodes.end(),
                               [&](const NodeDef& node) { return node.name == name; });
  REQUIRE_MESSAGE(at != nodes.end(), "no node '" << name << "'");
  return *at;
}
const FunctionDef& function(const StepGraph& step, const NodeDef& call, const char* attr) {
  const FunctionDef* f = step.graph.function(*call.attrs.at(attr).get<std::string>());
  REQUIRE(f != nullptr);
  return *f;
}
std::vector<std::string> names_of(const std::vector<NodeDef>& nodes, std::vector<Port> ports) {
  std::vector<std::string> out;
  for (Port p : ports)
    out.push_back(nodes[p.node].name + (p.index == 0 ? "" : ":" + std::to_string(p.index)));
  return out;
}
std::vector<std::string> ops_of(const std::vector<NodeDef>& nodes) {
  std::vector<std::string> out;
  for (const NodeDef& node : nodes) out.push_back(node.op);
  return out;
}
using Names = std::vector<std::string>;

// As long as p: x = x + y.
struct Adding {
  explicit Adding(GraphBuilder& g, const char* frame = "adding")
      : loop(g, frame),
        p(scalar(g, "p", DType::bool_)),
        x(scalar(g, "x")),
        y(scalar(g, "y")),
        again(loop.variable(p)),
        sum(loop.variable(x)),
        added(loop.constant(y)) {
    loop.again(again);
    loop.next(0, loop.passed(0));
    next = g.add("Add", {loop.passed(1), added});
    loop.next(1, next);
    last = loop.last(1);
  }
  PaperLoop loop;
  Output p, x, y, again, sum, added, next, last;
};

}  // namespace

TEST_CASE("Enter, NextIteration, Leave and LoopCond are raised to a loop") {
  GraphBuilder g(sample::ops());
  SUBCASE("a loop of two variables and an invariant") {
    Adding a(g);
    const StepGraph step = value_or_throw(raised(g, {a.last}));
    const auto& nodes = step.graph.nodes;
    const NodeDef& loop = named(nodes, "adding");
    CHECK(loop.op == "While");
    CHECK(names_of(nodes, loop.inputs) == Names{"_feed/p", "_feed/x", "_feed/y"});
    CHECK(loop_variables(loop) == 2);
    CHECK(loop.out_types == std::vector{DType::bool_, DType::f32, DType::resource});
    CHECK(ops_of(nodes) == Names{"_Feed", "_Feed", "_Feed", "While", "Identity"});
    CHECK(names_of(nodes, {step.fetches[0]}) == Names{"Leave"});
    CHECK(names_of(nodes, named(nodes, "Leave").inputs) == Names{"adding:1"});

    const FunctionDef& cond = function(step, loop, "cond");
    CHECK(names_of(cond.nodes, cond.results) == Names{"Merge"});
    const FunctionDef& body = function(step, loop, "body");
    CHECK(names_of(body.nodes, {{body.arguments[0], 0}, {body.arguments[1], 0}}) ==
          Names{"Merge", "Merge_1"});
    CHECK(names_of(body.nodes, body.results) == Names{"Merge", "Add"});
    CHECK(names_of(body.nodes, named(body.nodes, "Add").inputs) == Names{"Merge_1", "_feed/y"});
  }
  SUBCASE("a loop in a loop") {
    Output p = scalar(g, "p", DType::bool_), x = scalar(g, "x");
    PaperLoop outer(g, "outer");
    Output again = outer.variable(p), sum = outer.variable(x);
    outer.again(again);
    PaperLoop inner(g, "inner");
    Output inside = inner.variable(outer.passed(1));
    Output once = inner.variable(outer.passed(0));
    inner.again(once);
    inner.next(0, g.add("Add", {inner.passed(0), inner.constant(sum)}));
    inner.next(1, inner.passed(1));
    outer.next(0, outer.passed(0));
    outer.next(1, g.add("Neg", {inner.last(0, "Exit")}));
    const StepGraph step = value_or_throw(raised(g, {outer.last(1)}));
    CHECK(step.graph.functions.size() == 4);
    const FunctionDef& body = function(step, named(step.graph.nodes, "outer"), "body");
    const NodeDef& loop = named(body.nodes, "inner");
    CHECK(names_of(body.nodes, loop.inputs) == Names{"Merge_1", "Merge", "Merge_1"});
    CHECK(names_of(body.nodes, named(body.nodes, "Exit").inputs) == Names{"inner"});
    CHECK(names_of(body.nodes, body.results) == Names{"Merge", "Neg"});
    const FunctionDef& deeper = function(step, loop, "body");
    CHECK(ops_of(deeper.nodes) == Names{"Argument", "Argument", "Argument", "Add"});
    static_cast<void>(inside);
  }
  SUBCASE("a branch of the client's own in it") {
    Output p = scalar(g, "p", DType::bool_), x = scalar(g, "x"), q = scalar(g, "q", DType::bool_);
    PaperLoop loop(g, "loop");
    Output again = loop.variable(p);
    loop.variable(x);
    loop.again(again);
    Op sides = g.add(
        NodeSpec{.op = "Switch", .inputs = {loop.passed(1), loop.constant(q)}, .name = "sides"});
    loop.next(0, loop.passed(0));
    loop.next(1, g.add("Merge", {g.add("Neg", {sides.output(0)}), sides.output(1)}));
    const StepGraph step = value_or_throw(raised(g, {loop.last(1)}));
    const FunctionDef& body = function(step, named(step.graph.nodes, "loop"), "body");
    CHECK(named(body.nodes, "sides").op == "Switch");
    CHECK(names_of(body.nodes, body.results) == Names{"Merge", "Merge_2"});
  }
}

TEST_CASE("what the condition makes and the body uses is a variable of the raised loop") {
  GraphBuilder g(sample::ops());
  Output p = scalar(g, "p", DType::bool_), x = scalar(g, "x");
  PaperLoop loop(g, "loop");
  Output again = loop.variable(p), v = loop.variable(x);
  Output made = g.add("Neg", {v});
  loop.again(again);
  Op through = loop.let_through(made);
  loop.next(0, loop.passed(0));
  loop.next(1, g.add("Add", {through.output(1), loop.passed(1)}));
  Output last = g.add("Leave", {through.output(0)});
  const StepGraph step = value_or_throw(raised(g, {last}));
  const auto& nodes = step.graph.nodes;
  const NodeDef& call = named(nodes, "Enter");
  CHECK(call.op == "Call");
  const FunctionDef& condition = function(step, call, "function");
  CHECK(names_of(condition.nodes, condition.results) == Names{"Merge", "Neg"});
  const NodeDef& repeated = named(nodes, "loop");
  CHECK(names_of(nodes, repeated.inputs) == Names{"_feed/p", "_feed/x", "Enter", "Enter:1"});
  CHECK(names_of(nodes, named(nodes, "Leave").inputs) == Names{"loop:3"});
  const FunctionDef& body = function(step, repeated, "body");
  CHECK(names_of(body.nodes, body.results) == Names{"Merge", "Add", "condition", "condition:1"});
  CHECK(names_of(body.nodes, named(body.nodes, "Add").inputs) == Names{"Neg", "Merge_1"});
  const FunctionDef& cond = function(step, repeated, "cond");
  CHECK(names_of(cond.nodes, cond.results) == Names{"LoopCond"});
}

TEST_CASE("loops stand beside and behind each other, and in functions") {
  GraphBuilder g(sample::ops());
  Adding a(g, "first");
  PaperLoop second(g, "second");
  Output again = second.variable(a.p);
  second.variable(a.last);
  second.again(again);
  second.next(0, second.passed(0));
  second.next(1, g.add("Neg", {second.passed(1)}));
  Output y = second.last(1);
  {
    Body body(g, "f", {kHere, 7});
    Output argument = value_or_throw(body.argument({DType::f32, PartialShape::scalar()}, "x"));
    PaperLoop inside(g, "inside");
    Output once = inside.variable(a.p);
    inside.variable(argument);
    inside.again(once);
    inside.next(0, inside.passed(0));
    inside.next(1, g.add("Neg", {inside.passed(1)}));
    throw_if_error(body.returns({inside.last(1)}));
    throw_if_error(body.capture({a.p}));
    throw_if_error(body.finish().status());
  }
  Output z = g.add("Call", {y, a.p}, {{"function", "f"}});
  const StepGraph step = value_or_throw(raised(g, {z}));
  CHECK(names_of(step.graph.nodes, named(step.graph.nodes, "second").inputs) ==
        Names{"_feed/p", "Leave"});
  const FunctionDef& f = *step.graph.function("f");
  CHECK(named(f.nodes, "inside").op == "While");
  CHECK(names_of(f.nodes, f.results) == Names{"Leave"});
}

TEST_CASE("what a step does not need of a loop is not there") {
  GraphBuilder g(sample::ops());
  Adding a(g);
  const StepGraph step = value_or_throw(raised(g, {a.loop.last(0)}));
  CHECK(loop_variables(named(step.graph.nodes, "adding")) == 1);
}

TEST_CASE("constants and handles are used in a loop as they are") {
  GraphBuilder g(sample::ops());
  Output p = scalar(g, "p", DType::bool_), x = scalar(g, "x");
  Output v = g.add("Variable", {}, {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}});
  Output one = sample::constant(g, Tensor::scalar(1.0f));
  PaperLoop loop(g, "loop");
  Output again = loop.variable(p);
  loop.variable(x);
  loop.again(again);
  Output sum = g.add("Add", {loop.passed(1), one});
  Output read = g.add(NodeSpec{.op = "ReadVariable",
                               .inputs = {v},
                               .attrs = {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}},
                               .control = {sum}})
                    .output();
  loop.next(0, loop.passed(0));
  loop.next(1, g.add("Add", {sum, read}));
  const StepGraph step = value_or_throw(raised(g, {loop.last(1)}));
  const FunctionDef& body = function(step, named(step.graph.nodes, "loop"), "body");
  CHECK(ops_of(body.nodes) ==
        Names{"Argument", "Argument", "Argument", "Variable", "Add", "ReadVariable", "Add"});
}

TEST_CASE("what is no loop is refused by its nodes and their lines") {
  using Harm = std::function<Output(GraphBuilder&, Adding&)>;
  auto refused = [](const char* why, const Harm& harm) {
    CAPTURE(why);
    GraphBuilder g(sample::ops());
    auto line = g.with_site({kHere, 40});
    Adding a(g);
    const Output fetch = harm(g, a);
    const auto step = raised(g, {fetch});
    REQUIRE(!step.ok());
    const std::string text = step.status().text();
    CAPTURE(text);
    CHECK(step.status().code() == Code::invalid_argument);
    CHECK(text.find(why) != std::string::npos);
    CHECK(text.find("raise_test.cpp:40") != std::string::npos);
    CHECK(text.find('\n') == std::string::npos);
  };
  refused(
      "takes '_feed/x' (raise_test.cpp:1) outside of all loops and 'Enter_2' (raise_test.cpp:40) "
      "of "
      "the loop 'adding'",
      [](GraphBuilder& g, Adding& a) {
        return g.add("Add", {a.x, a.added});
      });
  refused("it consists of 'Enter' (raise_test.cpp:40), ", [](GraphBuilder& g, Adding& a) {
    return g.add("Add", {a.last, g.add("Leave", {g.add("Neg", {a.next})})});
  });
  refused("is in the loop 'adding', and only there",
          [](GraphBuilder&, Adding& a) { return a.next; });
  refused("'Leave_1' (Leave)", [](GraphBuilder& g, Adding& a) {  // of a loop in the loop
    PaperLoop inner(g, "inner");
    Output again = inner.variable(a.loop.passed(0));
    inner.again(again);
    inner.next(0, inner.passed(0));
    return inner.last(0);
  });
  refused("takes what is over", [](GraphBuilder& g, Adding& a) {
    Op again = a.loop.let_through(a.sum);
    return g.add("Leave", {g.add("Neg", {again.output(0)})});
  });
  refused("it has two LoopConds", [](GraphBuilder& g, Adding& a) {
    PaperLoop other(g, "adding");
    Output again = other.variable(a.p);
    other.again(again);
    other.next(0, other.passed(0));
    return g.add("Add", {a.last, g.add("Leave", {other.let_through(a.added).output(0)})});
  });
  refused("it has no LoopCond", [](GraphBuilder& g, Adding& a) {
    PaperLoop other(g, "other");
    return g.add("Leave", {other.constant(a.x)});
  });
  refused("it would go round for ever", [](GraphBuilder& g, Adding& a) {
    PaperLoop other(g, "other");
    Output again = other.variable(a.p), v = other.variable(a.x);
    other.again(again);
    other.next(0, other.passed(0));
    other.next(1, v);
    return other.last(1);
  });
  refused("asks whether this is the first iteration", [](GraphBuilder& g, Adding& a) {
    Op merged(a.again);
    return g.add("Leave", {a.loop.let_through(merged.output(1)).output(0)});
  });
  refused("goes to 'Neg", [](GraphBuilder& g, Adding& a) {
    Output begin = g.add("Enter", {a.x}, {{"frame_name", "adding"}});
    return g.add("Leave", {a.loop.let_through(g.add("Neg", {begin})).output(0)});
  });
  refused("does not join one Enter and one NextIteration", [](GraphBuilder& g, Adding& a) {
    PaperLoop other(g, "other");
    Output again = other.variable(a.p), v = other.variable(a.x);
    other.again(again);
    other.next(0, other.passed(0));
    static_cast<void>(v);
    return other.last(1);
  });
  refused("needs what the predicate of its own iteration lets through",
          [](GraphBuilder& g, Adding& a) {
            return g.add("Leave", {a.loop.let_through(a.loop.passed(1)).output(0)});
          });
  refused("comes after", [](GraphBuilder& g, Adding& a) {
    Op gate = a.loop.let_through(a.sum);
    Op odd = g.add(NodeSpec{.op = "Neg", .inputs = {a.sum}, .control = {gate}});
    return g.add("Leave", {a.loop.let_through(odd.output()).output(0)});
  });
  refused("and is not in that loop", [](GraphBuilder& g, Adding& a) {
    // The node that goes round goes out, too.
    NodeId round = g.node(a.sum.node()).inputs[1].node;
    Output odd = g.add("Merge", {a.x, a.x});
    throw_if_error(g.close_loop(odd.node(), 1, Output(&g, {round, 0})));
    return g.add("Add", {odd, a.last});
  });
  refused("it may be dead", [](GraphBuilder& g, Adding& a) {
    PaperLoop other(g, "other");
    Output again = other.variable(a.p), v = other.variable(a.x);
    other.again(again);
    other.next(0, other.passed(0));
    Op sides = g.add(NodeSpec{.op = "Switch", .inputs = {other.passed(1), other.constant(a.p)}});
    other.next(1, sides.output(0));
    static_cast<void>(v);
    return other.last(1);
  });
}

// A constant that enters does not say in which loop the loop stands.
TEST_CASE("constants begin variables of an inner loop, before or after what comes from around it") {
  for (bool first : {true, false}) {
    CAPTURE(first);
    GraphBuilder g(sample::ops());
    Output p = scalar(g, "p", DType::bool_), one = sample::constant(g, Tensor::scalar(1.0f));
    PaperLoop outer(g, "outer"), inner(g, "inner");
    Output early = first ? inner.variable(one) : Output();
    Output again = outer.variable(p);
    outer.variable(one);
    outer.again(again);
    if (!first) early = inner.variable(one);
    inner.variable(outer.passed(0));
    inner.again(inner.merge(1));
    inner.next(0, g.add("Neg", {inner.passed(0)}));
    inner.next(1, inner.passed(1));
    outer.next(0, outer.passed(0));
    outer.next(1, inner.last(0));
    const StepGraph step = value_or_throw(raised(g, {outer.last(1)}));
    const FunctionDef& body = function(step, named(step.graph.nodes, "outer"), "body");
    CHECK(named(body.nodes, "inner").op == "While");
    static_cast<void>(early);
  }
}

TEST_CASE("loops in loops in loops without end are refused") {
  GraphBuilder g(sample::ops());
  Output x = scalar(g, "x");
  for (int k = 0; k < 5'000; ++k)
    x = g.add("Enter", {x}, {{"frame_name", "f"}, {"is_constant", true}});
  for (int k = 0; k < 5'000; ++k) x = g.add("Leave", {x});
  CHECK(raised(g, {x}).status().code() == Code::resource_exhausted);
}

TEST_CASE("a loop that takes what is made of its own result is refused") {
  GraphBuilder g(sample::ops());
  auto line = g.with_site({kHere, 50});
  Adding a(g);
  Output late = a.loop.constant(g.add("Neg", {a.last}));
  Output fetch = g.add("Leave", {a.loop.let_through(late).output(0)});
  const auto step = raised(g, {fetch, a.last});
  REQUIRE(!step.ok());
  CHECK_MESSAGE(step.status().text().find(
                    "a loop takes what is made of its own results: "
                    "'Neg' (raise_test.cpp:50), 'adding' (raise_test.cpp:50)") != std::string::npos,
                step.status().text());
}

TEST_CASE("a loop of Enter and Leave has no gradient, and says so with its line") {
  GraphBuilder g(sample::ops());
  Adding a(g);
  Output last = g.add(NodeSpec{.op = "Leave",
                               .inputs = {a.loop.let_through(a.sum).output(0)},
                               .site = {kHere, 60}})
                    .output();
  const auto dx = gradients(std::vector{last}, std::vector{a.x});
  REQUIRE(!dx.ok());
  CHECK(dx.status().code() == Code::unimplemented);
  CHECK_MESSAGE(dx.status().text().find("raise_test.cpp:60") != std::string::npos,
                dx.status().text());
}

TEST_CASE("the frame and the window of an Enter are checked as it is added") {
  GraphBuilder g(sample::ops());
  Output x = scalar(g, "x");
  auto code = [&](AttrMap attrs) {
    return g.try_add({.op = "Enter", .inputs = {x}, .attrs = std::move(attrs)}).status().code();
  };
  CHECK(code({{"frame_name", "f"}}) == Code::ok);
  CHECK(code({}) == Code::invalid_argument);
  CHECK(code({{"frame_name", ""}}) == Code::invalid_argument);
  CHECK(code({{"frame_name", "a\nb"}}) == Code::invalid_argument);
  CHECK(code({{"frame_name", "f"}, {"parallel_iterations", 0}}) == Code::invalid_argument);
  CHECK(code({{"frame_name", "f"}, {"parallel_iterations", 1025}}) == Code::invalid_argument);
  CHECK(g.try_add({.op = "LoopCond", .inputs = {x}}).status().code() == Code::invalid_argument);
}

}  // namespace troupe::test::raising
