// Any graph on any devices computes what it computes on one.
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

constexpr const char* kDevices[] = {"/job:w/task:0/cpu:0", "/job:w/task:0/device:FAKE:0",
                                    "/job:w/task:1/cpu:0", "/job:w/task:1/device:FAKE:0",
                                    "/job:w/task:2/cpu:0"};

struct Case {
  Maker graph;
  CompileRequest request;
  std::vector<float> feeds;
};

// Data and control edges at random, variables read before and after writes, and feeds anywhere.
Case random_case(Random& random) {
  Case c;
  Maker& g = c.graph;
  g.def.seed = random();
  std::vector<Port> tensors, variables;
  std::vector<NodeId> runnable;
  const std::size_t size = 4 + random.below(30);
  auto any = [&] { return tensors[random.below(tensors.size())]; };
  for (std::size_t i = 0; i < size; ++i) {
    const std::string name = "n" + std::to_string(i);
    NodeOptions options;
    if (random.below(2)) options.device = kDevices[random.below(5)];
    if (random.below(6) == 0) options.device = random.below(2) ? "/cpu:0" : "/job:w/task:1";
    for (int k = 0; k < 2; ++k)
      if (!runnable.empty() && random.below(4) == 0)
        options.control.push_back(runnable[random.below(runnable.size())]);
    std::uint64_t kind = tensors.empty() ? 0 : random.below(10);
    if ((kind == 6 || kind == 7 || kind == 8) && variables.empty()) kind = 5;
    Port made;
    switch (kind) {
      case 0:
        made = g.constant(name, float(random.below(10)), options);
        break;
      case 1:
        made = g.add("Add", name, {any(), any()}, options);
        break;
      case 2:
        made = g.add("Sub", name, {any(), any()}, options);
        break;
      case 3:
        made = g.add("Both", name, {any()}, options);
        break;
      case 4:
        made = g.add("Scale", name, {any(), any()}, options);
        break;
      case 5: {
        options.control.clear();
        variables.push_back(g.variable(name, options));
        continue;
      }
      case 6:
        options.device.clear();  // runs where its variable is
        made = g.add("Read", name, {variables[random.below(variables.size())]}, options);
        break;
      case 7:
      case 8: {
        options.device.clear();
        Port v = variables[random.below(variables.size())];
        runnable.push_back(kind == 7 ? g.node("Assign", name, {v, any()}, options)
                                     : g.node("Descend", name, {v, any(), any()}, options));
        continue;
      }
      default:
        made = g.add("Draw", name, {}, options);
        break;
    }
    runnable.push_back(made.node);
    tensors.push_back(made);
    if (kind == 3) tensors.push_back({made.node, 1});
  }
  std::vector<Port> fed;
  for (Port p : tensors)
    if (random.below(12) == 0) {
      fed.push_back(p);
      c.request.feeds.push_back({g.name(p), int(p.index)});
      c.feeds.push_back(float(random.below(100)));
    }
  for (std::size_t k = 0; k < 1 + random.below(4); ++k) {
    Port p = any();
    if (std::find(fed.begin(), fed.end(), p) == fed.end())
      c.request.fetches.push_back({g.name(p), int(p.index)});
  }
  for (NodeId id : runnable)
    if (random.below(3) == 0) c.request.targets.push_back(g.def.nodes[id].name);
  c.request.targets.push_back(g.def.nodes[runnable.back()].name);
  return c;
}

// Channels and copies of the compiled step, so that the test knows it tested some.
std::size_t compare(std::uint64_t seed, bool with_passes) {
  Random random(seed);
  INFO("seed ", seed);
  Case c = random_case(random);
  const KernelIndex kernels = kernels_for({"CPU", "FAKE"});
  Target many = target({kDevices[0], kDevices[1], kDevices[2], kDevices[3], kDevices[4]}, &kernels);
  if (with_passes)
    many.evaluate = evaluate;
  else
    many.disabled = {"fold", "cse"};
  many.soft_placement = false;
  auto compiled = compile(c.graph.def, c.request, many);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  const Outcome wanted = run_graph(c.graph.def, c.request, c.feeds);
  const Outcome got = run_plans(*compiled, c.feeds, random);
  CHECK(got.fetches == wanted.fetches);
  for (const auto& [name, values] : wanted.variables) {
    if (values.size() == 1) continue;  // only read, and perhaps by nobody once passes ran
    auto at = got.variables.find(name);
    REQUIRE(at != got.variables.end());
    CHECK(at->second == values);
  }
  auto again = compile(c.graph.def, c.request, many);
  REQUIRE(again.ok());
  REQUIRE(again->plans.size() == compiled->plans.size());
  for (std::size_t i = 0; i < again->plans.size(); ++i)
    for (std::size_t n = 0; n < again->plans[i].info.size(); ++n)
      CHECK(again->plans[i].info[n].name == compiled->plans[i].info[n].name);
  return compiled->channels.size() + count_op(*compiled, "_Copy");
}

}  // namespace

TEST_CASE("a random graph on random devices computes what the graph says") {
  const std::uint64_t base = 20'000;
  MESSAGE("seeds from ", base);
  std::size_t crossings = 0;
  for (std::uint64_t i = 0; i < 1500; ++i) crossings += compare(base + i, i % 2 == 0);
  CHECK(crossings > 1500);
}
