// A session's graph at the master and its copies at the workers grow by what is new.
#include "actors/master/session_graphs.hpp"

#include <doctest/doctest.h>

#include "actors/worker/load_step.hpp"
#include "devices/cpu/cpu_device.hpp"
#include "graph/node_hash.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"

using namespace troupe;

namespace {

constexpr const char* kDevice0 = "/job:worker/task:0/cpu:0";
constexpr TaskId kTask{0};  // that it belongs to

// A client's graph, shipped piece by piece.
struct Shipped {
  ExtendSession next() {
    ExtendSession message;
    message.session = 1;
    message.from = from;
    message.hash = hash;
    auto graph = std::make_shared<GraphDef>();
    const auto& nodes = g.def().nodes;
    graph->seed = g.def().seed;
    graph->nodes.assign(nodes.begin() + std::ptrdiff_t(from), nodes.end());
    const auto& known = g.def().functions;
    graph->functions.assign(known.begin() + std::ptrdiff_t(functions), known.end());
    functions = known.size();
    for (const FunctionDef& f : graph->functions) hash = hash_functions(hash, f);
    for (const NodeDef& node : graph->nodes) hash = hash_nodes(hash, node);
    from = nodes.size();
    message.graph = std::move(graph);
    return message;
  }
  SessionGraphs::Work work(Output fetch, std::uint64_t version) {
    SessionGraphs::Work work;
    work.session = 1;
    work.request.fetches.push_back({g.node(fetch.node()).name, 0, false});
    work.target.devices.push_back({*DeviceName::parse(kDevice0), MemorySpace::host});
    work.versions[kTask] = version;
    return work;
  }
  // Of the whole graph so far.
  LoadStep step(Output fetch) {
    const SessionGraphs::Work whole = work(fetch, 0);
    LoadStep step;
    step.session = 1;
    step.version = g.def().nodes.size();
    step.request = whole.request;
    step.devices = whole.target.devices;
    return step;
  }
  Graph g;
  std::uint64_t from = 0, hash = 0;
  std::size_t functions = 0;
};

std::unique_ptr<Device> device_of_one_thread() {
  CpuOptions options;
  options.threads = 1;
  return make_cpu_device(*DeviceName::parse(kDevice0), options);
}

// A task that is sent these loads, one after the other, can prepare the step.
void check_prepared(Shipped& client, const Output& fetch,
                    const std::vector<const CompiledStepDraft*>& drafts) {
  const auto device = device_of_one_thread();
  for (bool check : {true, false}) {
    CAPTURE(check);
    StepLoader loader(kTask, ops::builtin(), {device.get()}, check);
    for (const CompiledStepDraft* draft : drafts) loader.load(draft->loads.at(kTask));
    PreparedStep prepared = loader.prepare(client.step(fetch), {});
    CHECK_MESSAGE(prepared.status.ok(), prepared.status.text());
  }
}

}  // namespace

TEST_CASE("the passes that a program added run where the master compiles, too") {
  OpTable table = ops::builtin();
  table.add_pass({.name = "refuse", .run = [](StepGraph&, const Target&) -> Status {
                    return invalid_argument("the pass ran");
                  }});
  Shipped client;
  SessionGraphs graphs(table);
  Output a = constant(client.g, 1.0f);
  REQUIRE(graphs.extend(client.next()).ok());
  CHECK(graphs.compile(client.work(a, 0)).status.message() == "the pass ran");
}

TEST_CASE("a task is sent the nodes that it does not have") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  Output a = constant(client.g, 1.0f);
  CHECK(graphs.extend(client.next())->version == 1);
  auto whole = graphs.compile(client.work(a, 0));
  REQUIRE_MESSAGE(whole.status.ok(), whole.status.text());
  CHECK(whole.loads.at(kTask).graph->nodes.size() == 1);
  CHECK(graphs.compile(client.work(a, 1)).loads.empty());
  Output b = a + 1.0f;
  const std::size_t nodes = client.g.def().nodes.size();
  CHECK(graphs.extend(client.next())->version == nodes);
  auto rest = graphs.compile(client.work(b, 1));
  REQUIRE_MESSAGE(rest.status.ok(), rest.status.text());
  CHECK(rest.loads.at(kTask).from == 1);
  CHECK(rest.loads.at(kTask).version == nodes);
  CHECK(rest.loads.at(kTask).graph->nodes.size() == nodes - 1);

  // The copy that the task makes of the pieces is the graph.
  const auto device = device_of_one_thread();
  for (bool check : {true, false}) {
    CAPTURE(check);
    StepLoader loader(kTask, ops::builtin(), {device.get()}, check);
    const LoadStep step = client.step(b);
    loader.load(whole.loads.at(kTask));
    CHECK(loader.prepare(step, {}).status.code() ==
          Code::failed_precondition);  // not all of it yet
    loader.load(rest.loads.at(kTask));
    PreparedStep prepared = loader.prepare(step, {});
    REQUIRE_MESSAGE(prepared.status.ok(), prepared.status.text());
    CHECK(prepared.partitions.size() == 1);
    CHECK(loader.prepare(step, [] { return true; }).status.code() == Code::cancelled);
    loader.load(rest.loads.at(kTask));  // once more: it does not follow
    Status status = loader.prepare(step, {}).status;
    CHECK(status.code() == Code::failed_precondition);
    CHECK(status.text().find("has " + std::to_string(nodes) + " nodes") != std::string::npos);
    loader.load(whole.loads.at(kTask));  // from the start
    loader.load(rest.loads.at(kTask));
    CHECK(loader.prepare(step, {}).status.ok());
  }
}

TEST_CASE("what checks the shape that a fed value leads to is on the GPU that has made it") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  const char* gpu = "/job:worker/task:0/cuda:0";
  Output x = placeholder<float>(client.g, {6}, "x");
  Output s = constant(client.g, Shape{2}, {std::int64_t{2}, std::int64_t{3}}), y;
  {
    auto there = client.g.with_device(gpu);
    y = relu(reshape(x, s));
  }
  REQUIRE(graphs.extend(client.next()).ok());
  SessionGraphs::Work work = client.work(y, 0);
  for (const Output& fed : {x, s})
    work.request.feeds.push_back({client.g.node(fed.node()).name, 0, false});
  work.target.devices.push_back({*DeviceName::parse(gpu), MemorySpace::device});
  work.target.soft_placement = false;
  const CompiledStepDraft draft = graphs.compile(work);
  REQUIRE_MESSAGE(draft.status.ok(), draft.status.text());
  for (const Plan& plan : draft.graph.plans)
    for (const PlanInfo& node : plan.info)
      if (node.def.op == "_EnsureShape") CHECK(plan.device == gpu);
}

TEST_CASE("a loop that is closed after a step was compiled runs in the next ones") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  auto enter = [&](Output x) {
    return client.g.add("Enter", {x}, {{"frame_name", "doubling"}, {"is_constant", false}});
  };
  Output a = constant(client.g, 1.0f), first = enter(a), other = enter(a);
  Output v = client.g.add("Merge", {first, first});
  Output again = client.g.add("LoopCond", {v < 100.0f});
  Op side = client.g.add(NodeSpec{.op = "Switch", .inputs = {v, again}});
  Output last = client.g.add("Leave", {side.output(0)});
  const ExtendSession open = client.next();
  const std::uint64_t nodes = graphs.extend(open)->version;
  auto before = graphs.compile(client.work(a, 0));
  REQUIRE_MESSAGE(before.status.ok(), before.status.text());
  CHECK(graphs.compile(client.work(last, nodes)).status.code() == Code::invalid_argument);

  throw_if_error(client.g.close_loop(
      v.node(), 1, client.g.add("NextIteration", {side.output(1) * constant(client.g, 2.0f)})));
  client.from = client.hash = client.functions = 0;  // the whole graph, as a session sends it
  const ExtendSession closed = client.next();
  auto changed = std::make_shared<GraphDef>(*closed.graph);
  changed->nodes[v.node()].inputs[0] = other.port();
  ExtendSession wrong = closed;
  wrong.graph = changed;
  CHECK(graphs.extend(wrong).status().message().find("it has other inputs") != std::string::npos);
  const auto version = graphs.extend(closed);
  REQUIRE_MESSAGE(version.ok(), version.status().text());
  CHECK(version->changed);
  auto after = graphs.compile(client.work(last, 0));
  REQUIRE_MESSAGE(after.status.ok(), after.status.text());
  CHECK_FALSE(graphs.extend(closed)->changed);

  check_prepared(client, last, {&before, &after});
}

TEST_CASE("nodes that do not follow those of the session are refused, and the graph stands") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  Output a = constant(client.g, 1.0f);
  REQUIRE(graphs.extend(client.next()).ok());
  Output b = a + 1.0f;
  const ExtendSession good = client.next();
  auto refused = [&](auto&& change) {
    ExtendSession message = good;
    auto graph = std::make_shared<GraphDef>(*good.graph);
    change(message, *graph);
    message.graph = std::move(graph);
    auto version = graphs.extend(message);
    REQUIRE_FALSE(version.ok());
    CHECK(graphs.compile(client.work(a, 1)).status.ok());
    return version.status();
  };
  Status status = refused([](ExtendSession& m, GraphDef&) { m.from = 2; });
  CHECK(status.text() ==
        "failed_precondition: nodes that come after 2 others, where the session has 1");
  status = refused([](ExtendSession& m, GraphDef&) { m.hash ^= 1; });
  CHECK(status.text().find("are not those that the session has") != std::string::npos);
  status = refused([](ExtendSession&, GraphDef& g) { g.seed = 8; });
  CHECK(status.text() == "failed_precondition: the graph's seed is 8, the session's is 0");
  status =
      refused([&](ExtendSession&, GraphDef& g) { g.nodes[0].name = client.g.def().nodes[0].name; });
  CHECK(status.text().find("both named") != std::string::npos);
  status = refused([](ExtendSession&, GraphDef& g) { g.nodes.back().inputs[0].node = 99; });
  CHECK(status.code() == Code::invalid_argument);
  REQUIRE(graphs.extend(good).ok());
  CHECK(graphs.compile(client.work(b, 1)).status.ok());
}

TEST_CASE("a task is sent the functions that came with the nodes that it does not have") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  auto square = [](Function&, Output k) { return k * k; };
  Function f = client.g.function("f", {f32_scalar}, {f32_scalar}, square);
  Output a = f(constant(client.g, 3.0f));
  const std::uint64_t first = graphs.extend(client.next())->version;
  auto whole = graphs.compile(client.work(a, 0));
  REQUIRE_MESSAGE(whole.status.ok(), whole.status.text());
  CHECK(whole.loads.at(kTask).graph->functions.size() == 1);
  Function h = client.g.function("h", {f32_scalar}, {f32_scalar},
                                 [&](Function&, Output k) { return f(k) + 1.0f; });
  Output b = h(a);
  REQUIRE(graphs.extend(client.next()).ok());
  auto rest = graphs.compile(client.work(b, first));
  REQUIRE_MESSAGE(rest.status.ok(), rest.status.text());
  REQUIRE(rest.loads.at(kTask).graph->functions.size() == 1);
  CHECK(rest.loads.at(kTask).graph->functions[0].name == "h");
  CHECK(graphs.compile(client.work(b, 0)).loads.at(kTask).graph->functions.size() == 2);

  check_prepared(client, b, {&whole, &rest});
}

TEST_CASE("a function that changed, or comes with no nodes, is refused, and the graph stands") {
  Shipped client;
  SessionGraphs graphs(ops::builtin());
  auto square = [](Function&, Output k) { return k * k; };
  Function f = client.g.function("f", {f32_scalar}, {f32_scalar}, square);
  Output a = f(constant(client.g, 3.0f));
  const ExtendSession good = client.next();
  REQUIRE(graphs.extend(good).ok());
  auto refused = [&](ExtendSession message, auto&& change) {
    auto graph = std::make_shared<GraphDef>(*message.graph);
    change(*graph);
    message.graph = std::move(graph);
    const Status status = graphs.extend(message).status();
    CHECK(!status.ok());
    CHECK(graphs.compile(client.work(a, 0)).status.ok());
    return status.text();
  };
  CHECK(refused(good, [](GraphDef& graph) {
          for (NodeDef& node : graph.functions[0].nodes)
            if (node.op == "Mul") node.op = "Add";
        }).find("function 'f' is not as the session knows it") != std::string::npos);
  CHECK(graphs.extend(good).ok());  // as it is it may come again
  client.g.function("h", {f32_scalar}, {f32_scalar}, square);
  CHECK(refused(client.next(), [](GraphDef&) {}).find("come with nodes") != std::string::npos);
}
