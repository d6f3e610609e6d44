// What a request needs of a graph, found from its end, is what pruning the whole graph leaves.
#include "graph/passes/feeds.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "graph/print.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

// Any mixture of the toy ops, with control edges, variables and placeholders.
Maker random_graph(std::mt19937_64& random) {
  const auto up_to = [&](std::size_t n) { return std::size_t(random() % n); };
  Maker g;
  std::vector<Port> values, handles;
  std::vector<NodeId> all;
  const std::size_t nodes = 5 + up_to(60);
  for (std::size_t i = 0; i < nodes; ++i) {
    const std::string name = "n" + std::to_string(i);
    NodeOptions options;
    for (std::size_t c = up_to(3); c > 0 && !all.empty(); --c)
      options.control.push_back(all[up_to(all.size())]);
    std::sort(options.control.begin(), options.control.end());
    options.control.erase(std::unique(options.control.begin(), options.control.end()),
                          options.control.end());
    const auto value = [&] { return values[up_to(values.size())]; };
    const std::size_t kind = values.size() < 2 ? up_to(2) : up_to(7);
    if (kind == 0) {
      values.push_back(g.add("Placeholder", name, {}, options));
    } else if (kind == 1) {
      values.push_back(g.add("Draw", name, {}, options));
    } else if (kind == 2) {
      values.push_back(g.add("Neg", name, {value()}, options));
    } else if (kind == 3 || handles.empty()) {
      if (handles.empty()) handles.push_back(g.variable("v" + name));
      values.push_back(g.add("Add", name, {value(), value()}, options));
    } else if (kind == 4) {
      handles.push_back(g.variable("v" + name));
      continue;
    } else if (kind == 5) {
      values.push_back(g.add("Read", name, {handles[up_to(handles.size())]}, options));
    } else {
      g.node("Assign", name, {handles[up_to(handles.size())], value()}, options);
    }
    all.push_back(NodeId(g.def.nodes.size() - 1));
  }
  return g;
}

CompileRequest random_request(const Maker& g, std::mt19937_64& random) {
  CompileRequest request;
  for (const NodeDef& node : g.def.nodes) {
    const bool value = node.out_types.size() == 1 && node.out_types[0] != DType::resource;
    if (value && random() % 6 == 0)
      request.fetches.push_back({node.name, 0, false});
    else if (value && random() % (node.op == "Placeholder" ? 2 : 8) == 0)
      request.feeds.push_back({node.name, 0, false});
    if (random() % 6 == 0) request.targets.push_back(node.name);
  }
  return request;
}

std::string step_text(const StepGraph& step) {
  std::string out = to_text(step.graph);
  for (Port fetch : step.fetches)
    out += "fetch " + std::to_string(fetch.node) + ":" + std::to_string(fetch.index) + "\n";
  for (NodeId target : step.targets) out += "target " + std::to_string(target) + "\n";
  for (const NodeDef& node : step.graph.nodes)
    for (NodeId c : node.control) out += node.name + " waits for " + std::to_string(c) + "\n";
  for (const std::string& note : step.notes) out += note + "\n";
  return out;
}

}  // namespace

TEST_CASE("what is needed of a graph is what feeds and prune leave of it") {
  int compared = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    const Maker g = random_graph(random);
    const Target here = target({kCpu});
    GraphIndex index;
    REQUIRE(index.extend(g.def, *here.ops).ok());
    const CompileRequest request = random_request(g, random);
    auto whole = feed_and_fetch(g.def, index, request, *here.ops);
    auto needed = feed_and_take(g.def, index, request, *here.ops);
    REQUIRE(whole.status() == needed.status());
    if (!whole.ok()) continue;
    Status first = prune(*whole, here), second = prune(*needed, here);
    REQUIRE(first == second);
    if (!first.ok()) continue;
    ++compared;
    REQUIRE(step_text(*whole) == step_text(*needed));
  }
  MESSAGE("compared " << compared);
  CHECK(compared > 100);
}
