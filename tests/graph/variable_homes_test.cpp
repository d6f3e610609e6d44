// Where the variables of a graph live, whatever is compiled first.
#include "graph/passes/variable_homes.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>

#include "graph/control/functions/body.hpp"
#include "graph/node_query.hpp"
#include "tests/graph/allocated.hpp"
#include "tests/graph/sample_ops.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

NodeOptions of_size(std::int64_t elements, std::string device = {}) {
  return {.device = std::move(device), .attrs = {{"shape", Attr(PartialShape{elements})}}};
}

Target two_tasks() {
  static const KernelIndex all = kernels_for({"CPU", "FAKE"});
  return target({kCpu, kFake, kCpu1}, &all);
}

// As resource_key() makes it of a handle of that name.
std::string key_of(const std::string& variable) {
  NodeDef handle;
  handle.op = "Variable", handle.name = variable;
  return resource_key(handle, toy::ops());
}

std::string home(const std::map<std::string, DeviceName>& homes, const std::string& variable) {
  auto at = homes.find(key_of(variable));
  return at == homes.end() ? "" : at->second.text();
}

}  // namespace

TEST_CASE("variables are spread over the tasks by bytes, in the order of the graph") {
  Maker g;
  g.variable("large", of_size(3));
  for (const char* name : {"a", "b", "c", "d"}) g.variable(name, of_size(1));
  const auto homes = variable_homes(g.def, two_tasks(), true);
  CHECK(home(homes, "large") == kCpu);
  for (const char* name : {"a", "b", "c"}) CHECK(home(homes, name) == kCpu1);
  CHECK(home(homes, "d") == kCpu);
}

TEST_CASE("variables that come later leave those before them where they are") {
  Maker g;
  for (const char* name : {"a", "b", "c"}) g.variable(name, of_size(2));
  const auto before = variable_homes(g.def, two_tasks(), true);
  for (const char* name : {"d", "e"}) g.variable(name, of_size(1));
  const auto after = variable_homes(g.def, two_tasks(), true);
  for (const auto& [name, device] : before) CHECK(after.at(name) == device);
}

TEST_CASE("variables that one node takes share a device, also if a function has the node") {
  using sample::ops;
  GraphBuilder g(ops());
  auto variable = [&](const char* name) {
    return g
        .add(NodeSpec{.op = "Variable",
                      .attrs = {{"dtype", DType::f32}, {"shape", PartialShape{4}}},
                      .name = name})
        .output();
  };
  variable("a");
  const Output b = variable("b"), c = variable("c");
  Body body(g, "reads", {"variable_homes_test.cpp", 1});
  // In the body both are arguments: what ties them to each other, and to a task, is there alone.
  NodeSpec first{.op = "ReadVariable", .inputs = {b}, .attrs = {{"dtype", DType::f32}}};
  first.device = "/job:w/task:1";
  const Output there = g.add(std::move(first)).output();
  NodeSpec second{.op = "ReadVariable", .inputs = {c}, .attrs = {{"dtype", DType::f32}}};
  second.colocate = {there.graph().node(there.node()).name};
  const Output sum = g.add("Add", {there, g.add(std::move(second)).output()});
  throw_if_error(body.returns({sum}));
  value_or_throw(body.finish());
  g.add(NodeSpec{.op = "Call",
                 .inputs = body.captured(),
                 .attrs = {{"function", body.name()}},
                 .name = "call"});
  Target target = two_tasks();
  target.ops = &ops();
  target.kernels = nullptr;
  const auto homes = variable_homes(g.def(), target, true);
  CHECK(home(homes, "a") == kCpu);
  CHECK(home(homes, "b") == kCpu1);
  CHECK(home(homes, "c") == kCpu1);
}

TEST_CASE("what uses a variable says where it lives, in whatever request it is") {
  Maker g;
  Port w = g.variable("w", of_size(1)), slot = g.variable("slot", of_size(1));
  Port pinned = g.variable("pinned", of_size(1)), free = g.variable("free", of_size(1));
  g.node("AssignBoth", "update", {w, slot, g.constant("c", 1)});
  g.add("Read", "read", {pinned}, {.device = "/job:w/task:0"});
  g.add("Read", "read_free", {free});
  const auto homes = variable_homes(g.def, two_tasks(), true);
  CHECK(home(homes, "w") == home(homes, "slot"));
  CHECK(home(homes, "pinned") == kCpu);
  CHECK(home(homes, "w") == kCpu1);  // the pinned one counts first
  CHECK(home(homes, "free") == kCpu);
}

TEST_CASE("what an earlier compile has fixed stays, and counts") {
  Maker g;
  g.variable("a", of_size(5));
  g.variable("b", of_size(1));
  Target target = two_tasks();
  target.fixed[key_of("a")] = *DeviceName::parse(kCpu1);
  const auto homes = variable_homes(g.def, target, true);
  CHECK(homes.size() == 1);
  CHECK(home(homes, "b") == kCpu);
}

TEST_CASE("a variable about which nodes contradict each other has no home, others have") {
  Maker g;
  Port v = g.variable("v", of_size(1));
  g.variable("w", of_size(1));
  g.add("Read", "here", {v}, {.device = "/job:w/task:0"});
  g.add("Read", "there", {v}, {.device = "/job:w/task:1"});
  g.variable("x", of_size(1, "/job:w/task:7"));
  const auto homes = variable_homes(g.def, two_tasks(), true);
  CHECK(home(homes, "v") == "");
  CHECK(home(homes, "x") == "");
  CHECK(home(homes, "w") == kCpu);
}

TEST_CASE("in one task there is nothing to spread") {
  Maker g;
  g.variable("v", of_size(1));
  static const KernelIndex all = kernels_for({"CPU", "FAKE"});
  CHECK(variable_homes(g.def, target({kCpu, kFake}, &all), true).empty());
}

TEST_CASE("with one replica a variable is where any node of the graph wants it, else anywhere") {
  Maker g;
  Port v = g.variable("v", of_size(1)), w = g.variable("w", of_size(1));
  g.variable("free", of_size(1));
  g.add("Read", "there", {v}, {.device = "/job:w/task:1"});
  g.add("Read", "beside", {w}, {.device = "/device:FAKE:0"});
  g.variable("nowhere", of_size(1, "/device:CPU:7"));
  const auto homes = variable_homes(g.def, two_tasks(), false);
  CHECK(home(homes, "v") == kCpu1);
  CHECK(home(homes, "w") == kFake);
  CHECK(homes.size() == 2);
  static const KernelIndex all = kernels_for({"CPU", "FAKE"});
  // Of one task the devices count, too.
  CHECK(home(variable_homes(g.def, target({kCpu, kFake}, &all), false), "w") == kFake);
  CHECK(variable_homes(g.def, target({kCpu}, &all), false).empty());
}

TEST_CASE("a node bears on the homes unless it goes wherever its one variable is") {
  Maker g;
  Port v = g.variable("v", of_size(1)), slot = g.variable("slot", of_size(1));
  Port c = g.constant("c", 1);
  g.add("Read", "read", {v});
  g.add("Read", "pinned", {v}, {.device = "/job:w/task:1"});
  g.add("Read", "beside", {v}, {.colocate = {"slot"}});
  g.node("AssignBoth", "both", {v, slot, c});
  std::set<std::string> bear;
  for (NodeId id = 0; id < g.def.nodes.size(); ++id)
    if (bears_on_homes(g.def, id, toy::ops())) bear.insert(g.def.nodes[id].name);
  CHECK(bear == std::set<std::string>{"beside", "both", "pinned", "slot", "v"});
}

TEST_CASE("functions that are called with more orders of variables than there is time for") {
  using sample::ops;
  GraphBuilder g(ops());
  std::vector<Output> v;
  for (int i = 0; i < 80; ++i)
    v.push_back(g.add(NodeSpec{.op = "Variable",
                               .attrs = {{"dtype", DType::f32}, {"shape", PartialShape{4}}},
                               .name = "v" + std::to_string(i)})
                    .output());
  std::string inner;
  for (std::size_t level = 0; level < 40; ++level) {
    Body body(g, "f", {"variable_homes_test.cpp", std::uint32_t(level)});
    for (const Output& each : v)
      g.add(NodeSpec{.op = "ReadVariable", .inputs = {each}, .attrs = {{"dtype", DType::f32}}});
    std::vector<Output> other = v;
    std::swap(other[2 * level], other[2 * level + 1]);
    for (const auto& passed : {v, other})
      if (!inner.empty())
        g.add(NodeSpec{.op = "Call", .inputs = passed, .attrs = {{"function", inner}}});
    throw_if_error(body.returns({}));
    value_or_throw(body.finish());
    inner = body.name();
  }
  g.add(NodeSpec{.op = "Call", .inputs = v, .attrs = {{"function", inner}}});
  Target target = two_tasks();
  target.ops = &ops();
  target.kernels = nullptr;
  const std::uint64_t before = test::allocated_bytes();
  const auto homes = variable_homes(g.def(), target, true);
  CHECK(test::allocated_bytes() - before < (std::uint64_t{1} << 30));
  CHECK(homes.size() == 80);
}
