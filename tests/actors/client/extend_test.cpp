// Create, Extend and what a run asks for.
#include <doctest/doctest.h>

#include <algorithm>
#include <caf/send.hpp>
#include <limits>
#include <thread>

#include "actors/runtime/runtime.hpp"
#include "tests/actors/support/sessions.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

// A master that is spoken to as no Session would.
struct Master {
  template <class Message>
  CallResult ask(Message message) {
    message.call = std::make_shared<Call>();
    auto call = message.call;
    caf::anon_send(runtime->master(), std::move(message));
    return call->wait(false);
  }
  Status extend(const GraphDef& graph) {
    return ask(ExtendSession{7, std::make_shared<GraphDef>(graph), nullptr}).status;
  }
  CallResult compile(CompileRequest request) { return ask(CompileStep{7, request, nullptr}); }

  std::unique_ptr<Runtime> runtime = value_or_throw(Runtime::start(one_thread(), nullptr));
};

CompileRequest fetch(std::string name) {
  CompileRequest request;
  request.fetches.push_back({std::move(name), 0, false});
  return request;
}

}  // namespace

TEST_CASE("a session is created once, and runs nothing before it has a graph") {
  Master master;
  CHECK(master.extend({}).code() == Code::failed_precondition);  // not created yet
  CHECK(master.ask(OpenSession{7, nullptr}).status.ok());
  CHECK(master.ask(OpenSession{7, nullptr}).status.code() == Code::already_exists);
  CHECK(master.compile(fetch("x")).status.code() == Code::invalid_argument);
  // Closed three times at once: all are answered.
  std::shared_ptr<Call> calls[3];
  for (auto& call : calls) {
    call = std::make_shared<Call>();
    caf::anon_send(master.runtime->master(), CloseSession{7, call});
  }
  for (auto& call : calls) CHECK(call->wait().status.ok());
  CHECK(master.compile(fetch("x")).status.code() == Code::failed_precondition);
}

TEST_CASE("Extend by a graph that is none is refused, and the old graph stands") {
  Graph g;
  Output a = constant(g, 2.0f);
  Output b = a + 3.0f;
  const GraphDef old = *g.snapshot();
  Master master;
  CHECK(master.ask(OpenSession{7, nullptr}).status.ok());
  REQUIRE(master.extend(old).ok());
  auto still_runs = [&, run = 0]() mutable {
    CallResult compiled = master.compile(fetch(b.name().substr(0, b.name().find(':'))));
    REQUIRE_MESSAGE(compiled.status.ok(), compiled.status.text());
    RunStep step;
    step.run = {7, std::uint64_t(++run)};
    step.compiled = compiled.compiled;
    CallResult result = master.ask(std::move(step));
    REQUIRE_MESSAGE(result.status.ok(), result.status.text());
    CHECK(result.fetches[0].item<float>() == 5);
  };
  still_runs();
  GraphDef graph = old;
  graph.nodes.push_back(old.nodes[0]);  // a name that is taken
  Status taken = master.extend(graph);
  CHECK_FALSE(taken.ok());
  CHECK(taken.text().find(old.nodes[0].name) != std::string::npos);
  still_runs();
  graph = old;
  graph.nodes.pop_back();  // another version
  CHECK(master.extend(graph).code() == Code::failed_precondition);
  graph = old;
  graph.nodes.back().name = "other";
  CHECK(master.extend(graph).code() == Code::failed_precondition);
  graph = old;
  graph.nodes.back().op = "Sub";
  CHECK(master.extend(graph).code() == Code::failed_precondition);
  graph = old;
  std::swap(graph.nodes.back().inputs[0], graph.nodes.back().inputs[1]);
  CHECK(master.extend(graph).code() == Code::failed_precondition);
  graph = old;
  graph.nodes.back().device = "/job:worker/task:3";
  CHECK(master.extend(graph).code() == Code::failed_precondition);
  graph = old;
  graph.nodes.push_back(old.nodes.back());
  graph.nodes.back().name = "dangling";
  graph.nodes.back().inputs[0].node = 99;
  CHECK(master.extend(graph).code() == Code::invalid_argument);
  still_runs();
}

TEST_CASE("Extend names what was changed in a node that the session knows") {
  Graph g;
  Output x = placeholder<float>(g, {2}, "x");
  Output a = constant(g, 2.0f), b = constant(g, 3.0f);
  FIFOQueueOptions options;
  options.shapes = {PartialShape::scalar()};
  options.capacity = 2;
  Output queue = fifo_queue(g, {DType::f32}, options);
  Output sum = troupe::sum(x * a + b);
  Op after = group(g, {Op(sum)});
  const GraphDef old = *g.snapshot();
  Master master;
  CHECK(master.ask(OpenSession{7, nullptr}).status.ok());
  REQUIRE(master.extend(old).ok());
  auto refused = [&](NodeId id, std::vector<std::string> words, auto&& change) {
    GraphDef graph = old;
    change(graph.nodes[id]);
    Status status = master.extend(graph);
    CAPTURE(status.text());
    CHECK(status.code() == Code::failed_precondition);
    CHECK(status.text().find("extend_test.cpp") != std::string::npos);
    words.push_back("'" + old.nodes[id].name + "'");
    for (const std::string& word : words) CHECK(status.text().find(word) != std::string::npos);
    CHECK(master.extend(old).ok());  // it stands as it was
  };
  refused(a.node(), {"'value'", "5", "2"},
          [](NodeDef& n) { n.attrs["value"] = Attr(Tensor::scalar(5.0f)); });
  refused(x.node(), {"'shape'", "[3]", "[2]"},
          [](NodeDef& n) { n.attrs["shape"] = Attr(PartialShape{3}); });
  refused(queue.node(), {"'capacity'", "32", "2"},
          [](NodeDef& n) { n.attrs["capacity"] = Attr(std::int64_t{32}); });
  refused(queue.node(), {"'capacity'", "32", "2"},  // the default
          [](NodeDef& n) { n.attrs.erase("capacity"); });
  refused(sum.node(), {"'keep_dims'", "true", "false"},
          [](NodeDef& n) { n.attrs["keep_dims"] = Attr(true); });
  refused(b.node(), {"name", "other"}, [](NodeDef& n) { n.name = "other"; });
  refused(b.node(), {"op", "Placeholder"}, [](NodeDef& n) {
    n.op = "Placeholder";
    n.attrs = {{"T", DType::f32}, {"shape", PartialShape::scalar()}};
  });
  refused(b.node(), {"device", "task:3"}, [](NodeDef& n) { n.device = "/job:worker/task:3"; });
  refused(b.node(), {"colocated"}, [&](NodeDef& n) { n.colocate = {old.nodes[a.node()].name}; });
  refused(b.node(), {"control"}, [&](NodeDef& n) { n.control = {a.node()}; });
  refused(after.node(), {"control"}, [](NodeDef& n) { n.control.clear(); });
  refused(sum.node(), {"inputs"}, [&](NodeDef& n) { n.inputs[0] = x.port(); });
  GraphDef other = old;
  other.seed = 8;
  CHECK(master.extend(other).text() ==
        "failed_precondition: the graph's seed is 8, the session's is 0");
}

TEST_CASE("a graph may be shipped again as it is, however it spells the same") {
  Graph g;
  FIFOQueueOptions options;
  options.shapes = {PartialShape::scalar()};
  Output queue = fifo_queue(g, {DType::f32}, options);
  Output nan = constant(g, std::numeric_limits<float>::quiet_NaN());
  Op put = enqueue(queue, {nan});
  {
    auto here = g.with_device("/job:worker/task:0");
    group(g, {put, Op(nan)});
  }
  Master master;
  CHECK(master.ask(OpenSession{7, nullptr}).status.ok());
  GraphDef graph = *g.snapshot();
  REQUIRE(master.extend(graph).ok());
  for (NodeDef& node : graph.nodes) {
    node.site = {};
    node.attrs.erase("capacity");                         // its default
    if (node.op == "Enqueue") node.attrs.erase("types");  // what its inputs are
    if (auto value = node.attrs.find("value"); value != node.attrs.end()) {
      const Tensor& old = *value->second.get<Tensor>();
      Tensor copy = Tensor::scalar(old.item<float>());
      REQUIRE(copy.raw() != old.raw());
      value->second = Attr(copy);
    }
    std::reverse(node.control.begin(), node.control.end());
    if (!node.device.empty()) node.device = "/job:worker/replica:0/task:0";
  }
  Status status = master.extend(graph);
  CHECK_MESSAGE(status.ok(), status.text());
  // A list in which a node stands before what it needs is put in order, each time the same.
  GraphDef odd = *g.snapshot();
  NodeDef early = odd.nodes[nan.node()];
  early.name = "early";
  early.op = "Neg";
  early.attrs.clear();
  early.inputs = {{NodeId(odd.nodes.size() + 1), 0}};
  odd.nodes.push_back(early);
  odd.nodes.push_back(odd.nodes[nan.node()]);
  odd.nodes.back().name = "late";
  for (int i = 0; i < 3; ++i) {
    status = master.extend(odd);
    CHECK_MESSAGE(status.ok(), status.text());
    odd.nodes.push_back(odd.nodes[nan.node()]);
    odd.nodes.back().name = "more" + std::to_string(i);
  }
}

TEST_CASE("Extend while steps run: they go on, and the new nodes run beside them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    GatedSession x(place, place.first);
    std::vector<PendingRun> runs;
    for (int i = 0; i < 3; ++i) runs.push_back(x.take.start());
    Variable v = variable_on(x.g, place.second, "v", Tensor::scalar(1.0f));
    x.s->init();
    for (int i = 0; i < 5; ++i) {  // five times larger
      Output more = v.value() + float(i);
      CHECK(x.s->run({more})[0].item<float>() == 1 + float(i));
    }
    for (PendingRun& run : runs) CHECK_FALSE(run.done());
    for (int i = 0; i < 3; ++i) x.put(4);
    for (PendingRun& run : runs) CHECK(run.get()[0].item<float>() == -4);
    CHECK(x.take.start().done() == false);
  }
}

TEST_CASE("Extend keeps variables where they are, and what is in them") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable(g, "v", Tensor::scalar(1.0f));  // wherever placement likes
    Op add = assign_add(v, constant(g, 3.0f));
    PlacedSession s(g, place);
    s->init();
    s->run({}, {add});
    // New nodes that would draw it to the other device, had it no place yet.
    for (const char* device : {place.first, place.second}) {
      Output there = node(g, device, "Neg", {v.value()}).output();
      Output factor;
      {
        auto on = g.with_device(device);
        factor = constant(g, 2.0f);
      }
      Op twice = assign_add(v, v.value() * factor - v.value());
      CHECK(s->run({there})[0].item<float>() == -4);
      CHECK(s->run({v.value()}, {twice})[0].item<float>() == 4);
      CHECK(s->run({v.value()})[0].item<float>() == 8);
      s->run({}, {assign(v, constant(g, 4.0f))});
    }
  }
}

TEST_CASE("Extend by nodes that cannot be placed leaves the session as it was") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Variable v = variable(g, "v", Tensor::scalar(1.0f));
    PlacedSession s(g, place);
    s->init();
    auto step = s->compile({v.value()});
    Output nowhere = node(g, "/job:other/task:5", "Neg", {v.value()}).output();
    CHECK_FALSE(s->try_run({nowhere}).ok());
    CHECK(step.run()[0].item<float>() == 1);
    Output more = v.value() + 1.0f;
    CHECK(s->run({more})[0].item<float>() == 2);
  }
}

TEST_CASE("a run computes the closure of what it asks for, and nothing else") {
  for (const Place& place : kPlaces) {
    CAPTURE(place.name);
    Graph g;
    Output x = placeholder<float>(g, {-1}, "x");
    Gate gate(g, place.second);
    Output blocked = gate.taken + 1.0f;
    Output y = node(g, place.second, "Neg", {x}).output();
    PlacedSession s(g, place);
    Tensor value = Tensor::of<float>({2}, {1, 2});
    CHECK(s->run({y}, {}, {{x, value}})[0].data<float>()[1] == -2);
    // What is fed is not computed.
    CHECK(s->run({blocked}, {}, {{gate.taken, Tensor::scalar(1.0f)}})[0].item<float>() == 2);
  }
}

TEST_CASE("a run that asks for the same twice, or for nothing, is told so") {
  Graph g;
  Output x = placeholder<float>(g, {}, "x");
  Output y = x * 2.0f;
  Gate gate(g, "/job:worker/task:0");
  PlacedSession s(g, kPlaces[0]);
  Tensor one = Tensor::scalar(1.0f);
  auto text = [&](const Expected<std::vector<Tensor>>& result) {
    CHECK(result.status().code() == Code::invalid_argument);
    return result.status().text();
  };
  auto has = [](const std::string& whole, std::string_view part) {
    CAPTURE(whole);
    CHECK(whole.find(part) != std::string::npos);
  };
  has(text(s->try_run({y}, {}, {{x, one}, {x, one}})), "fed more than once");
  has(text(s->try_run({x}, {}, {{x, one}})), "both fed and fetched");
  (void)text(s->try_run({}, {}, {}));
  (void)text(s->try_run({}, {}, {{x, one}}));
  Master master;
  CHECK(master.ask(OpenSession{7, nullptr}).status.ok());
  REQUIRE(master.extend(*g.snapshot()).ok());
  Status no_output = master.compile(fetch(gate.put.name())).status;
  CHECK(no_output.code() == Code::invalid_argument);
  has(no_output.text(), "target");
  auto twice = s->run({y, y}, {}, {{x, one}});
  CHECK(twice[0].item<float>() == 2);
  CHECK(twice[1].item<float>() == 2);
}
