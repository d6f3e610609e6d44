// Channels and copies: one per tensor and destination, in the right memory.
#include <doctest/doctest.h>

#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

CompiledGraph must_compile(const Maker& g, const CompileRequest& r,
                           std::initializer_list<const char*> devices) {
  Target t = target(devices);
  t.soft_placement = false;
  auto compiled = compile(g.def, r, t);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return std::move(*compiled);
}

}  // namespace

TEST_CASE("a tensor crosses once to each device, whatever the number of its readers") {
  Maker g;
  Port a = g.add("Both", "a", {g.constant("c", 1, {.device = kCpu})}, {.device = kCpu});
  for (const char* name : {"b", "d"}) g.add("Neg", name, {a}, {.device = kCpu1});
  g.add("Add", "e", {a, {a.node, 1}}, {.device = kCpu1});
  g.add("Sub", "f", {a, a}, {.device = kFake});
  CompiledGraph c = must_compile(g, request({"b", "d", "e", "f"}), {kCpu, kCpu1, kFake});
  CHECK(c.plans.size() == 3);
  REQUIRE(c.channels.size() == 3);  // a:0 and a:1 to task 1, a:0 to FAKE
  CHECK(count_op(c, "_Send") == 3);
  CHECK(count_op(c, "_Recv") == 3);
  for (std::uint32_t i = 0; i < c.channels.size(); ++i) {
    CHECK(c.channels[i].id == i);
    CHECK(c.channels[i].dtype == DType::f32);
    CHECK(c.channels[i].loop.empty());
    CHECK(c.plans[c.channels[i].from].device == kCpu);
  }
  CHECK(c.channels[0].name == "a:0");
}

TEST_CASE("a control edge waits for a data channel of its node, or gets an empty one") {
  Maker g;
  Port a = g.add("Draw", "a", {}, {.device = kCpu});
  NodeId effect = g.node("NoOp", "effect", {}, {.device = kCpu});
  g.node("NoOp", "b", {}, {.control = {effect}, .device = kCpu1});
  g.node("NoOp", "c", {}, {.control = {effect}, .device = kCpu1});
  g.add("Neg", "d", {a}, {.control = {a.node}, .device = kCpu1});
  CompiledGraph c = must_compile(g, request({"d"}, {"b", "c"}), {kCpu, kCpu1});
  REQUIRE(c.channels.size() == 2);
  const Channel& empty = c.channels[0].name == "^effect" ? c.channels[0] : c.channels[1];
  CHECK(empty.name == "^effect");
  CHECK(empty.dtype == DType::u8);
  CHECK(empty.shape == PartialShape{0});
  Found send = find(c, "_send/" + std::to_string(empty.id) + "/^effect");
  CHECK(send.plan->nodes[send.node].inputs == 0);
  CHECK(send.plan->pending[send.node] == 1);
  Found d = find(c, "d");
  CHECK(d.plan->pending[d.node] == 2);
}

TEST_CASE("tensors are copied once per memory space, and cross in host memory") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  Port a = g.add("Neg", "a", {x}, {.device = kFake});
  Port s = g.add("Scale", "s", {a, a}, {.device = kFake});  // its factor is a host argument
  g.add("Scale", "t", {s, a}, {.device = kFake});
  g.add("Neg", "far", {a}, {.device = kCpu1});
  CompiledGraph c = must_compile(g, request({"t", "a", "far"}, {}, {"x"}), {kCpu1, kFake});
  // x to the device; a to the host for s, t, its fetch and its send; t to the host.
  CHECK(count_op(c, "_Copy") == 3);
  Found scale = find(c, "s");
  CHECK(scale.info().input_space ==
        std::vector<MemorySpace>{MemorySpace::device, MemorySpace::host});
  Random random(3);
  Outcome got = run_plans(c, {3}, random);
  CHECK(got.fetches == std::vector<float>{-27, -3, 3});
}

TEST_CASE("variables are in the device's memory; elements, sizes and messages in the host's") {
  Maker g;
  Port v = g.variable("v", {.device = kFake});
  Port read = g.add("Read", "read", {v});
  Port data = g.add("Dataset", "data", {}, {.device = kFake});
  Port next = g.add("Next", "next", {data});
  Port queue = g.add("Queue", "queue", {}, {.device = kFake});
  Port sum = g.add("Add", "sum", {read, next}, {.device = kFake});
  g.node("Enqueue", "enqueue", {queue, sum});
  g.node("Assign", "write", {v, next});
  g.add("Size", "size", {sum}, {.device = kFake});
  CompiledGraph c = must_compile(g, request({"size"}, {"enqueue", "write"}), {kCpu, kFake});
  REQUIRE(c.plans.size() == 1);
  const Plan& plan = c.plans[0];
  auto space = [&](const char* node) {
    return plan.slots[plan.nodes[find(c, node).node].first_slot].space;
  };
  CHECK(space("read") == MemorySpace::device);
  CHECK(space("next") == MemorySpace::host);
  CHECK(space("sum") == MemorySpace::device);
  CHECK(space("size") == MemorySpace::host);
  CHECK(find(c, "enqueue").info().input_space[0] == MemorySpace::host);
  CHECK(find(c, "write").info().input_space[0] == MemorySpace::device);
  CHECK(count_op(c, "_Copy") == 2);  // next to the device, once; sum to the host
  CHECK(plan.resources.size() == 3);
}

TEST_CASE("a feed is a slot of every partition that reads it, and crosses nothing") {
  Maker g;
  Port x = g.add("Placeholder", "x");
  g.add("Neg", "a", {x}, {.device = kCpu});
  g.add("Neg", "b", {x}, {.device = kCpu1});
  CompiledGraph c = must_compile(g, request({"a", "b"}, {}, {"x"}), {kCpu, kCpu1});
  CHECK(c.channels.empty());
  for (const Plan& plan : c.plans) {
    REQUIRE(plan.feeds.size() == 1);
    CHECK(plan.feeds[0].feed == 0);
    CHECK(plan.roots.size() == 1);
  }
}

TEST_CASE("a request for a handle alone makes one empty plan") {
  Maker g;
  g.variable("v");
  CompiledGraph c = must_compile(g, request({}, {"v"}), {kCpu, kCpu1});
  REQUIRE(c.plans.size() == 1);
  CHECK(c.plans[0].nodes.empty());
  CHECK(c.plans[0].roots.empty());
}
