// Feeds, fetches, pruning and the form of plans.
#include <doctest/doctest.h>

#include "graph/passes/make_plan.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

bool says(const Status& status, std::string_view text) {
  return status.text().find(text) != std::string::npos;
}

// y = (x + c) * 2, with `both` of two outputs beside it.
Maker small_graph() {
  Maker g;
  Port x = g.add("Placeholder", "x");
  Port c = g.constant("c", 3);
  Port sum = g.add("Add", "sum", {x, c});
  Port both = g.add("Both", "both", {sum});
  g.add("Mul", "y", {{both.node, 0}, {both.node, 1}});
  g.node("NoOp", "group", {}, {.control = {sum.node}});
  g.add("Neg", "unused", {x});
  return g;
}

Expected<CompiledGraph> compile_small(CompileRequest request) {
  return compile(small_graph().def, request, target({"/job:w/task:0/cpu:0"}));
}

std::vector<float> run(const GraphDef& graph, const CompileRequest& r, std::vector<float> feeds,
                       const Target& t) {
  auto compiled = compile(graph, r, t);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  Random random(1);
  return run_plans(*compiled, feeds, random).fetches;
}

}  // namespace

TEST_CASE("a compile that is stopped ends at its next stage, or at the next node it would fold") {
  Maker g;
  g.add("Neg", "c", {g.add("Neg", "b", {g.constant("a", 1)})});
  Target t = target({kCpu});
  int asked = 0, stop_at = 0, folded = 0;
  t.stopped = [&] { return ++asked == stop_at; };
  t.evaluate = [&](const NodeDef& node, const std::vector<Tensor>& inputs) {
    ++folded;
    return evaluate(node, inputs);
  };
  REQUIRE(compile(g.def, request({"c"}), t).ok());
  CHECK(folded == 2);
  const int all = asked;
  for (stop_at = 1; stop_at <= all; ++stop_at) {
    asked = folded = 0;
    CHECK(compile(g.def, request({"c"}), t).status().code() == Code::cancelled);
    CHECK(asked == stop_at);
  }
}

TEST_CASE("a step has what its fetches need and no more") {
  auto compiled = compile_small(request({"y"}, {}, {"x"}));
  REQUIRE(compiled.ok());
  REQUIRE(compiled->plans.size() == 1);
  const Plan& plan = compiled->plans[0];
  CHECK(plan.device == "/job:w/task:0/cpu:0");
  CHECK(plan.nodes.size() == 4);  // c, sum, both, y
  CHECK(plan.feeds.size() == 1);
  CHECK(plan.fetches.size() == 1);
  CHECK(plan.roots == std::vector<std::uint32_t>{0});
  CHECK(plan.slots[plan.feeds[0].slot].readers == 1);
  CHECK(plan.slots[plan.fetches[0].slot].fetched);
  CHECK(plan.pending == std::vector<std::uint32_t>{0, 1, 1, 2});
  CHECK(plan.frames.size() == 1);
  CHECK(plan.frames[0].nodes == 4);
  CHECK(plan.frames[0].slots == 6);
  CHECK(plan.nodes[find(*compiled, "sum").node].cheap);
  CHECK_FALSE(plan.nodes[find(*compiled, "both").node].cheap);
  CHECK_FALSE(plan.writes);
  CHECK(find(*compiled, "y").info().def.site.text() == "toy.cpp:5");
}

TEST_CASE("a fetch repeated is computed once and returned twice") {
  Target t = target({"/job:w/task:0/cpu:0"});
  CompileRequest r = request({"sum", "y", "sum"}, {}, {"x"});
  CHECK(run(small_graph().def, r, {1}, t) == std::vector<float>{4, 40, 4});
  auto compiled = compile(small_graph().def, r, t);
  CHECK(count_op(*compiled, "Add") == 1);
}

TEST_CASE("feeding one output leaves the others real, and prunes behind it when none is needed") {
  Target t = target({"/job:w/task:0/cpu:0"});
  CHECK(run(small_graph().def, request({"y"}, {}, {"both:1", "x"}), {10, 1}, t) ==
        std::vector<float>{50});
  auto compiled = compile(small_graph().def, request({"y"}, {}, {"both", "both:1"}), t);
  REQUIRE(compiled.ok());
  CHECK(compiled->plans[0].nodes.size() == 1);
}

TEST_CASE("a control edge stays on a node whose output is fed, but not on a placeholder") {
  Target t = target({"/job:w/task:0/cpu:0"});
  auto compiled = compile(small_graph().def, request({}, {"group"}, {"sum", "x"}), t);
  REQUIRE(compiled.ok());
  CHECK(count_op(*compiled, "Add") == 1);

  Maker g;
  Port x = g.add("Placeholder", "x");
  g.node("NoOp", "after", {}, {.control = {x.node}});
  CHECK(compile(g.def, request({}, {"after"}, {"x"}), t).ok());
  CHECK(says(compile(g.def, request({}, {"after"}), t).status(), "placeholder 'x'"));
}

TEST_CASE("each wrong request has an error of its own") {
  auto error = [](CompileRequest r) { return compile_small(std::move(r)).status(); };
  CHECK(says(error(request({})), "neither a fetch nor a target"));
  CHECK(says(error(request({"y"}, {}, {"x", "x"})), "fed more than once"));
  CHECK(says(error(request({"sum"}, {}, {"sum"})), "both fed and fetched"));
  CHECK(says(error(request({"group"}, {}, {"x"})), "name it as a target"));
  CHECK(says(error(request({"y:1"}, {}, {"x"})), "1 output(s)"));
  Status unknown = error(request({"summ"}));
  CHECK(unknown.code() == Code::not_found);
  CHECK(says(unknown, "near names: sum"));
  CHECK(says(error(request({}, {"nothing"})), "no such node"));
  Status unfed = error(request({"y"}));
  CHECK(unfed.code() == Code::invalid_argument);
  CHECK(says(unfed, "toy.cpp:1"));
  CHECK(says(unfed, "placeholder 'x'"));
  CompileRequest none = request({"y"}, {}, {"x"});
  none.replicas = 0;
  CHECK(says(error(none), "replicas"));
  CHECK(says(compile(small_graph().def, request({"y"}), target({})).status(), "no devices"));
}

TEST_CASE("a handle is neither fed nor fetched, and goes straight to its op") {
  Target t = target({"/job:w/task:0/cpu:0"});
  Maker g;
  Port v = g.variable("v");
  Port read = g.add("Read", "read", {v});
  CHECK(says(compile(g.def, request({"v"}), t).status(), "is a handle"));
  CHECK(says(compile(g.def, request({"read"}, {}, {"v"}), t).status(), "is a handle"));
  g.add("Neg", "wrong", {v});
  CHECK(says(compile(g.def, request({"wrong"}), t).status(), "must go straight"));
  g.add("Read", "none", {read});
  CHECK(says(compile(g.def, request({"none"}), t).status(), "must be a handle"));
}

TEST_CASE("handles become resources, and writes keep their operands only") {
  Maker g;
  Port v = g.variable("v", {.attrs = {{"shared_name", Attr("weights")}, {"container", Attr("c")}}});
  Port c = g.constant("c", 1);
  g.node("Descend", "train", {v, c, c});
  g.add("Read", "read", {v});
  auto compiled = compile(g.def, request({"read"}, {"train"}), target({"/job:w/task:0/cpu:0"}));
  REQUIRE(compiled.ok());
  const Plan& plan = compiled->plans[0];
  REQUIRE(plan.resources.size() == 1);
  CHECK(plan.resources[0].name == "weights");
  CHECK(plan.resources[0].container == "c");
  CHECK(plan.resources[0].def.name == "v");
  CHECK(plan.writes);
  Found train = find(*compiled, "train");
  CHECK(plan.nodes[train.node].inputs == 2);
  CHECK(train.info().handles == std::vector<std::uint32_t>{0});
  CHECK(train.info().resource == 0);
  CHECK(count_op(*compiled, "Variable") == 0);
}

TEST_CASE("reads are numbered by the writes before them, and writes are put in order") {
  Maker g;
  Port v = g.variable("v");
  Port w = g.variable("other_handle", {.attrs = {{"shared_name", Attr("v")}}});
  Port c = g.constant("c", 1);
  Port before = g.add("Read", "before", {v});
  NodeId first = g.node("Assign", "first", {v, c});
  Port free = g.add("Read", "free", {v});
  Port between = g.add("Read", "between", {w}, {.control = {first}});
  NodeId second = g.node("Assign", "second", {w, c});  // unordered: after `first` by number
  Port after = g.add("Read", "after", {v}, {.control = {second}});
  (void)before, (void)free, (void)between, (void)after;
  auto compiled = compile(g.def, request({"before", "free", "between", "after"}),
                          target({"/job:w/task:0/cpu:0"}));
  REQUIRE(compiled.ok());
  CHECK(find(*compiled, "before").info().epoch == 0);
  CHECK(find(*compiled, "free").info().epoch == 0);
  CHECK(find(*compiled, "between").info().epoch == 1);
  CHECK(find(*compiled, "after").info().epoch == 2);
  CHECK(find(*compiled, "second").info().epoch == 1);
  const Plan& plan = compiled->plans[0];
  CHECK(plan.resources.size() == 1);
  CHECK(plan.pending[find(*compiled, "second").node] == 2);  // its value and `first`
}

TEST_CASE("a read has the effect of the writes of its variable with smaller epochs") {
  Maker g;
  Port v = g.variable("v"), w = g.variable("w");
  Port c = g.constant("c", 1);
  NodeId w0 = g.node("Assign", "w0", {w, c});
  NodeId w1 = g.node("Assign", "w1", {w, c}, {.control = {w0}});
  NodeId both = g.node("AssignBoth", "both", {v, w, c}, {.control = {w1}});
  NodeId v1 = g.node("Assign", "v1", {v, c});
  g.add("Read", "v_after_both", {v}, {.control = {both}});
  g.add("Read", "v_after_all", {v}, {.control = {v1}});
  g.add("Read", "w_after_w0", {w}, {.control = {w0}});
  auto compiled = compile(g.def, request({"v_after_both", "v_after_all", "w_after_w0"}),
                          target({"/job:w/task:0/cpu:0"}));
  REQUIRE(compiled.ok());
  auto epoch = [&](const char* node) { return find(*compiled, node).info().epoch; };
  CHECK(epoch("w0") == 0);
  CHECK(epoch("w1") == 1);
  CHECK(epoch("both") == 2);
  CHECK(epoch("v1") == 3);
  CHECK(epoch("v_after_both") == 3);
  CHECK(epoch("v_after_all") == 4);
  CHECK(epoch("w_after_w0") == 1);
  CHECK(find(*compiled, "both").info().handles.size() == 2);
}

TEST_CASE("one name for two different variables is refused") {
  Maker g;
  Port a = g.variable("a", {.attrs = {{"shared_name", Attr("s")}}});
  Port b =
      g.variable("b", {.attrs = {{"shared_name", Attr("s")}, {"shape", Attr(PartialShape{2})}}});
  g.add("Add", "sum", {g.add("Read", "ra", {a}), g.add("Read", "rb", {b})});
  Status s = compile(g.def, request({"sum"}), target({"/job:w/task:0/cpu:0"})).status();
  CHECK(says(s, "share the name 's'"));
  CHECK(says(s, "toy.cpp:1"));
}

TEST_CASE("random keys come from seed and name, whatever else is in the step") {
  Maker g;
  g.def.seed = 5;
  Port a = g.add("Draw", "a");
  Port b = g.add("Draw", "b");
  g.add("Sub", "d", {a, b});
  Target t = target({"/job:w/task:0/cpu:0"});
  auto both = compile(g.def, request({"d"}), t);
  auto alone = compile(g.def, request({"b"}), t);
  CHECK(find(*both, "b").info().random_key == find(*alone, "b").info().random_key);
  CHECK(find(*both, "a").info().random_key != find(*both, "b").info().random_key);
  g.def.seed = 6;
  auto other = compile(g.def, request({"b"}), t);
  CHECK(find(*other, "b").info().random_key != find(*alone, "b").info().random_key);
}

TEST_CASE("the liveness bound follows the order of the plan") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  Port a = g.add("Neg", "a", {x});
  Port b = g.add("Neg", "b", {a});
  Port c = g.add("Neg", "c", {b});
  g.add("Add", "d", {c, a});
  for (NodeDef& node : g.def.nodes) node.out_shapes = {PartialShape{100}};
  auto compiled = compile(g.def, request({"d"}, {}, {"x"}), target({"/job:w/task:0/cpu:0"}));
  // While c is computed a, b and c are there; with d it is a, c and d.
  CHECK(liveness_bound_bytes(compiled->plans[0]) == 3 * 400);
  auto chain = compile(g.def, request({"c"}, {}, {"x"}), target({"/job:w/task:0/cpu:0"}));
  CHECK(liveness_bound_bytes(chain->plans[0]) == 2 * 400);
}

TEST_CASE("the observer sees every stage in order") {
  std::vector<std::string> stages;
  CHECK(compile(small_graph().def, request({"y"}, {}, {"x"}), target({"/job:w/task:0/cpu:0"}),
                [&](std::string_view stage, const GraphDef&) { stages.emplace_back(stage); })
            .ok());
  CHECK(stages == std::vector<std::string>{"feeds", "prune", "raise", "state", "lower", "fold",
                                           "cse", "sweep", "order", "replicate", "place", "fuse",
                                           "distribute", "partition"});
}

TEST_CASE("a pass of the program's own runs after the stage it names, unless switched off") {
  Target t = target({"/job:w/task:0/cpu:0"});
  auto double_negation = [](StepGraph& step, const Target&) -> Status {
    for (NodeDef& node : step.graph.nodes)
      if (node.op == "Neg" && step.graph.nodes[node.inputs[0].node].op == "Neg")
        node.inputs[0] = step.graph.nodes[node.inputs[0].node].inputs[0];
    step.notes.push_back("negations joined");
    return ok_status();
  };
  t.passes.push_back({"double_negation", "cse", double_negation});
  t.passes.push_back({"refuse", "place", [](StepGraph&, const Target&) -> Status {
                        return invalid_argument("no more than this");
                      }});
  Maker g;
  g.add("Neg", "y", {g.add("Neg", "n", {g.add("Placeholder", "x")})});
  CompileRequest wanted = request({"y"}, {}, {"x"});
  Status refused = compile(g.def, wanted, t).status();
  CHECK(refused.code() == Code::invalid_argument);
  CHECK(says(refused, "in pass refuse"));

  t.disabled = {"refuse"};
  std::vector<std::string> stages;
  auto with = compile(g.def, wanted, t,
                      [&](std::string_view stage, const GraphDef&) { stages.emplace_back(stage); });
  REQUIRE(with.ok());
  CHECK(stages[7] == "double_negation");
  CHECK(stages[6] == "cse");
  t.disabled = {"refuse", "double_negation"};
  auto without = compile(g.def, wanted, t);
  REQUIRE(without.ok());
  CHECK(with->plans[0].nodes.size() + 1 == without->plans[0].nodes.size());

  t.disabled = {"refuse", "cse"};  // not what follows it
  stages.clear();
  REQUIRE(compile(g.def, wanted, t, [&](std::string_view stage, const GraphDef&) {
            stages.emplace_back(stage);
          }).ok());
  CHECK(stages[6] == "double_negation");
  CHECK(stages[5] == "fold");
}

TEST_CASE("a graph that breaks its contract is refused with the node's name") {
  Target t = target({"/job:w/task:0/cpu:0"});
  Maker g;
  g.constant("same", 1);
  g.constant("same", 2);
  CHECK(says(compile(g.def, request({"same"}), t).status(), "two nodes have this name"));
  Maker later;
  later.add("Neg", "n", {{5, 0}});
  CHECK(says(compile(later.def, request({"n"}), t).status(), "in node 'n'"));
  Maker strange;
  strange.add("Nge", "n", {});
  CHECK(says(compile(strange.def, request({}, {"n"}), t).status(), "did you mean Neg"));
  Maker loop;
  Port c = loop.constant("c", 1);
  loop.add("NextIteration", "round", {c});
  CHECK(says(compile(loop.def, request({"round"}), t).status(), "in node 'round'"));
}
