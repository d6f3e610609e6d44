// Logical replicas: what is copied, what is shared, and where it goes.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/passes/replicate.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

// One training step: loss = next * v + draw, v -= rate * loss.
Maker training() {
  Maker g;
  Port data = g.add("Dataset", "data");
  Port next = g.add("Next", "next", {data});
  Port v = g.variable("v");
  Port read = g.add("Read", "read", {v});
  Port product = g.add("Mul", "product", {next, read});
  Port loss = g.add("Add", "loss", {product, g.add("Draw", "draw")});
  Port rate = g.constant("rate", 0.5);
  NodeId train = g.node("Descend", "train", {v, rate, loss});
  g.node("NoOp", "group", {}, {.control = {train}});
  g.add("Read", "after", {v}, {.control = {train}});
  return g;
}

CompiledGraph must_compile(const Maker& g, CompileRequest r, std::int32_t replicas,
                           std::initializer_list<const char*> devices = {kCpu}) {
  r.replicas = replicas;
  auto compiled = compile(g.def, r, target(devices));
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return std::move(*compiled);
}

std::int64_t int_attr(const PlanInfo& info, const char* name) {
  return *info.def.attrs.find(name)->second.get<std::int64_t>();
}

}  // namespace

TEST_CASE("what depends on a replica's data is copied, the rest is shared") {
  CompiledGraph c = must_compile(training(), request({"loss"}, {"group"}), 3);
  CHECK(count_op(c, "Next") == 3);
  CHECK(count_op(c, "Draw") == 3);
  CHECK(count_op(c, "Descend") == 3);
  CHECK(count_op(c, "Read") == 1);
  CHECK(count_op(c, "NoOp") == 1);
  CHECK(count_op(c, "Const") == 2);  // rate, and 1/3 for the fetch
  for (std::int32_t r = 0; r < 3; ++r) {
    Found train = find(c, "train/replica_" + std::to_string(r));
    CHECK(train.info().replica == r);
    CHECK(int_attr(train.info(), "replicas") == 3);
    CHECK(int_attr(find(c, "next/replica_" + std::to_string(r)).info(), "replicas") == 3);
  }
  CHECK(find(c, "read").info().replica == -1);
  Found group = find(c, "group");
  CHECK(group.plan->pending[group.node] == 3);
}

TEST_CASE("one replica has the random keys of none, others have their own") {
  const CompileRequest r = request({"loss"}, {"group"});
  const std::uint64_t alone = find(must_compile(training(), r, 1), "draw").info().random_key;
  CompiledGraph two = must_compile(training(), r, 2);
  CHECK(find(two, "draw/replica_0").info().random_key == alone);
  CHECK(find(two, "draw/replica_1").info().random_key != alone);
}

TEST_CASE("a fetched scalar of each replica becomes the mean, in replica order") {
  Maker g;
  Port draw = g.add("Draw", "draw");
  g.add("Both", "both", {draw});
  CompiledGraph c = must_compile(g, request({"both:1", "both:1", "draw"}), 3);
  Random random(1);
  Outcome out = run_plans(c, {}, random);
  float sum = 0;
  for (int r = 0; r < 3; ++r)
    sum += compute(find(c, "draw/replica_" + std::to_string(r)).info().def, {},
                   find(c, "draw/replica_" + std::to_string(r)).info().random_key)[0];
  CHECK(out.fetches[0] == doctest::Approx(2 * sum / 3));
  CHECK(out.fetches[1] == out.fetches[0]);
  CHECK(out.fetches[2] == doctest::Approx(sum / 3));
  CHECK(count_op(c, "AddN") == 2);  // the repeated fetch is joined once
  Found sum_node = find(c, "draw/replica_mean_sum");
  std::vector<std::uint32_t> parts;
  for (std::uint32_t i = 0; i < 3; ++i)
    parts.push_back(
        sum_node.plan->input_slots[sum_node.plan->nodes[sum_node.node].first_input + i]);
  CHECK(std::is_sorted(parts.begin(), parts.end()));
}

TEST_CASE("replicas that are all fed the same say that they compute alike") {
  Maker g;
  Port fed = g.add("Dataset", "data");
  Port x = g.add("Next", "x", {fed});
  Port v = g.variable("v"), w = g.variable("w");
  Port rate = g.constant("rate", 0.5);
  Port loss = g.add("Mul", "loss", {x, g.add("Read", "read", {v})});
  g.node("Descend", "train", {v, rate, loss});
  g.node("Descend", "train_w", {w, rate, loss});
  auto alike = [&](const std::vector<const char*>& feeds, std::int32_t replicas) {
    CompileRequest r = request({"loss"}, {"train", "train_w"});
    for (const char* feed : feeds) r.feeds.push_back(PortName::parse(feed).value());
    std::string said;
    for (const std::string& note : must_compile(g, r, replicas).notes)
      if (note.starts_with(kReplicasAlike)) said += note;
    return said;
  };
  CHECK(alike({}, 2).empty());  // each takes its own
  CHECK(alike({"x"}, 1).empty());
  CHECK(alike({"rate"}, 2).empty());  // fed, but nothing that is reduced
  const std::string said = alike({"x"}, 2);
  CHECK(said.find("2 replicas do not share the work of 'train' and 1 other updates") !=
        std::string::npos);
}

TEST_CASE("a fetch that is no float scalar is replica 0's") {
  Maker g;
  Port draw = g.add("Draw", "draw");
  g.def.nodes[draw.node].out_shapes = {PartialShape{4}};
  CompiledGraph c = must_compile(g, request({"draw"}), 2);
  CHECK(count_op(c, "AddN") == 0);
  Found zero = find(c, "draw/replica_0");
  CHECK(c.plans[0].fetches[0].slot == c.plans[0].nodes[zero.node].first_slot);
}

TEST_CASE("a write whose reduced operand is shared stays single") {
  Maker g;
  Port v = g.variable("v");
  Port draw = g.add("Draw", "draw");
  Port one = g.constant("one", 1);
  g.node("Assign", "assign", {v, draw});         // reduces nothing: replica 0's value
  g.node("Descend", "descend", {v, draw, one});  // the gradient is shared
  CompiledGraph c = must_compile(g, request({}, {"assign", "descend"}), 2);
  CHECK(count_op(c, "Assign") == 1);
  CHECK(count_op(c, "Descend") == 1);
  CHECK(find(c, "descend").info().def.attrs.count("replicas") == 0);  // as the client left it
}

TEST_CASE("copies of one write share an epoch, and a later read waits for all of them") {
  CompiledGraph c = must_compile(training(), request({"after"}), 2);
  CHECK(find(c, "train/replica_0").info().epoch == 0);
  CHECK(find(c, "train/replica_1").info().epoch == 0);
  Found after = find(c, "after");
  CHECK(after.info().epoch == 1);
  CHECK(after.plan->pending[after.node] == 2);
}

TEST_CASE("a copy waits for its own replica's nodes, but for every copy of a write") {
  Maker g = training();
  const NodeId loss = g.def.find("loss");
  const Port v{g.def.find("v"), 0}, rate{g.def.find("rate"), 0};
  g.node("Descend", "second", {v, rate, {loss, 0}});  // put after `train`
  g.add("Neg", "late", {{loss, 0}}, {.control = {g.def.find("product")}});
  CompiledGraph c = must_compile(g, request({"late"}, {"second"}), 2);
  for (const char* copy : {"second/replica_0", "second/replica_1"}) {
    Found second = find(c, copy);
    CHECK(second.info().epoch == 0);
    CHECK(second.plan->pending[second.node] == 2);  // `train` is not part of this step
  }
  Found late = find(c, "late/replica_1");
  CHECK(late.plan->pending[late.node] == 2);
  CompiledGraph both = must_compile(g, request({}, {"train", "second"}), 2);
  Found second = find(both, "second/replica_1");
  CHECK(second.info().epoch == 1);
  CHECK(second.plan->pending[second.node] == 2 + 2);  // rate, loss, both copies of `train`
}

TEST_CASE("replicas go round the tasks, and keep to their resources") {
  CompiledGraph c = must_compile(training(), request({"loss"}, {"group"}), 3, {kCpu, kCpu1});
  CHECK(find(c, "product/replica_0").plan->device == kCpu);
  CHECK(find(c, "product/replica_1").plan->device == kCpu1);
  CHECK(find(c, "product/replica_2").plan->device == kCpu);
  const std::string variable = find(c, "read").plan->device;
  for (int r = 0; r < 3; ++r)
    CHECK(find(c, "train/replica_" + std::to_string(r)).plan->device == variable);
  for (const Plan& plan : c.plans)
    for (const PlanInfo& info : plan.info)
      if (!info.handles.empty()) CHECK(info.handles[0] < plan.resources.size());
}

TEST_CASE("each replica reads its elements in its own task, and none are sent") {
  CompiledGraph c = must_compile(training(), request({"loss"}, {"group"}), 3, {kCpu, kCpu1});
  for (int r = 0; r < 3; ++r) {
    const Found next = find(c, "next/replica_" + std::to_string(r));
    CHECK(next.plan->device == (r == 1 ? kCpu1 : kCpu));
    const ResourceRef& read = next.plan->resources[next.info().resource];
    CHECK(read.kind == "dataset");
    CHECK(read.name == "data");  // one position of the job for all of them
    CHECK(int_attr(next.info(), "replicas") == 3);
    const PlanNode& node = next.plan->nodes[next.node];
    for (std::uint32_t e = 0; e < node.edges; ++e)
      CHECK(next.plan->info[next.plan->edges[node.first_edge + e].node].def.op != "_Send");
  }
  for (const Plan& plan : c.plans)
    CHECK(std::count_if(plan.resources.begin(), plan.resources.end(),
                        [](const ResourceRef& r) { return r.kind == "dataset"; }) == 1);
}

TEST_CASE("a dataset that is asked to be somewhere, or whose reader is, is read there alone") {
  for (const char* constrained : {"data", "next"}) {
    CAPTURE(constrained);
    Maker g = training();
    for (NodeDef& node : g.def.nodes)
      if (node.name == constrained) node.device = kCpu1;
    CompiledGraph c = must_compile(g, request({"loss"}, {"group"}), 3, {kCpu, kCpu1});
    for (int r = 0; r < 3; ++r)
      CHECK(find(c, "next/replica_" + std::to_string(r)).plan->device == kCpu1);
    CHECK(find(c, "product/replica_0").plan->device == kCpu);
  }
}

TEST_CASE("a kernel that reduces is given every copy, and what follows is computed once") {
  Maker g;
  Port draw = g.add("Draw", "draw");
  Port v = g.variable("v"), rate = g.constant("rate", 0.5);
  Port sum = g.add("Together", "sum", {g.add("Neg", "minus", {draw})});
  g.node("Descend", "train", {v, rate, g.add("Neg", "back", {sum})});
  CompiledGraph c = must_compile(g, request({"back"}, {"train"}), 3);
  CHECK(count_op(c, "Draw") == 3);
  CHECK(count_op(c, "Together") == 1);
  CHECK(count_op(c, "Descend") == 1);
  Found together = find(c, "sum");
  CHECK(together.info().replica == -1);
  CHECK(int_attr(together.info(), "N") == 3);
  float want = 0;
  for (int r = 0; r < 3; ++r) {
    Found one = find(c, "draw/replica_" + std::to_string(r));
    want += compute(one.info().def, {}, one.info().random_key)[0];
  }
  Random random(1);
  CHECK(run_plans(c, {}, random).fetches[0] == doctest::Approx(want));
}

TEST_CASE("a step that is too large for so many replicas is refused before it is copied") {
  Maker g;
  Port y = g.add("Draw", "draw");
  for (int i = 0; i < 5000; ++i) y = g.add("Neg", "n" + std::to_string(i), {y});
  CompileRequest r = request({g.name(y)});
  r.replicas = 20;
  CHECK(compile(g.def, r, target({kCpu})).ok());
  r.replicas = 1024;
  Status status = compile(g.def, r, target({kCpu})).status();
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(status.text().find("too large for 1024 replicas") != std::string::npos);
}

TEST_CASE("what a kernel that reduces would be given counts as well") {
  Maker g;
  Port sum = g.add("Together", "sum", std::vector<Port>(5000, g.add("Draw", "draw")));
  CompileRequest r = request({g.name(sum)});
  r.replicas = 1024;
  CHECK(compile(g.def, r, target({kCpu})).status().code() == Code::resource_exhausted);
  r.replicas = 13;
  CHECK(compile(g.def, r, target({kCpu})).ok());
  r.replicas = 14;  // 70,000 inputs
  Status status = compile(g.def, r, target({kCpu})).status();
  CHECK(status.code() == Code::resource_exhausted);
  CHECK(status.text().find("in node 'sum'") != std::string::npos);
}

TEST_CASE("a name that a copy would take is refused") {
  Maker g;
  Port draw = g.add("Draw", "draw");
  g.add("Neg", "draw/replica_1", {draw});
  CompileRequest r = request({"draw/replica_1"});
  r.replicas = 2;
  Status s = compile(g.def, r, target({kCpu})).status();
  CHECK(s.code() == Code::invalid_argument);
  CHECK(s.text().find("copy made for a replica") != std::string::npos);
}
