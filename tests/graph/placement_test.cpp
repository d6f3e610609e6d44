// Which device a node gets, and the errors of constraints that cannot be met.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/node_query.hpp"
#include "graph/passes/placement.hpp"
#include "tests/graph/toy.hpp"

using namespace troupe;
using namespace troupe::toy;

namespace {

struct Placed {
  Expected<CompiledGraph> compiled;
  std::string device(std::string_view node) const {
    REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
    return find(*compiled, node).plan->device;
  }
  bool says(std::string_view text) const {
    INFO(compiled.status().text());
    return compiled.status().text().find(text) != std::string::npos;
  }
  bool noted(std::string_view text) const {
    for (const std::string& note : compiled->notes)
      if (note.find(text) != std::string::npos) return true;
    return false;
  }
};

// Hard placement unless said otherwise, on `devices`, kernels for CPU and FAKE.
Placed place(const Maker& g, CompileRequest r, std::initializer_list<const char*> devices,
             bool soft = false, const KernelIndex* kernels = nullptr) {
  static const KernelIndex all = kernels_for({"CPU", "FAKE"});
  Target t = target(devices, kernels ? kernels : &all);
  t.soft_placement = soft;
  return {compile(g.def, r, t)};
}

}  // namespace

TEST_CASE("what is not constrained goes to the first CPU, numbers sorted as numbers") {
  Maker g;
  g.add("Neg", "n", {g.add("Draw", "d")});
  Placed p = place(g, request({"n"}),
                   {"/job:w/task:10/cpu:0", "/job:w/task:2/cpu:0", "/job:w/task:2/device:FAKE:0"});
  CHECK(p.device("n") == "/job:w/task:2/cpu:0");
}

TEST_CASE("a partial constraint picks the first device that matches") {
  Maker g;
  g.add("Draw", "type", {}, {.device = "/device:FAKE:*"});
  g.add("Draw", "task", {}, {.device = "/job:w/task:1"});
  Placed p = place(g, request({"type", "task"}), {kCpu, kFake, kCpu1});
  CHECK(p.device("type") == kFake);
  CHECK(p.device("task") == kCpu1);
}

TEST_CASE("colocated nodes go together, also by the name of a node that was pruned") {
  Maker g;
  g.add("Draw", "a", {}, {.device = kFake});
  g.add("Draw", "b", {}, {.colocate = {"a"}});
  g.add("Draw", "gone", {});
  g.add("Draw", "c", {}, {.colocate = {"gone"}});
  g.add("Draw", "d", {}, {.device = kCpu1, .colocate = {"gone"}});
  Placed p = place(g, request({"a", "b", "c", "d"}), {kCpu, kFake, kCpu1});
  CHECK(p.device("b") == kFake);
  CHECK(p.device("c") == kCpu1);
}

TEST_CASE("what uses a variable runs where the variable is") {
  Maker g;
  Port v = g.variable("v", {.device = kFake});
  Port c = g.constant("c", 1);
  g.add("Read", "read", {v});
  g.node("Assign", "write", {v, c});
  Placed p = place(g, request({"read"}, {"write"}), {kCpu, kFake});
  CHECK(p.device("read") == kFake);
  CHECK(p.device("write") == kFake);
  CHECK(find(*p.compiled, "read").plan->resources.size() == 1);
}

TEST_CASE("a variable is where the writes of a step can be applied") {
  Maker g;
  Port v = g.variable("v");
  g.node("Assign", "write", {v, g.constant("c", 1)});
  KernelIndex kernels = kernels_for({"FAKE", "CPU"});  // the first is preferred
  CHECK(place(g, request({}, {"write"}), {kCpu, kFake}, false, &kernels).device("write") == kFake);
  kernels.add("Assign", "CPU", {});
  CHECK(place(g, request({}, {"write"}), {kCpu, kFake}, false, &kernels).device("write") == kCpu);
  kernels.add("Assign", "FAKE", {});
  CHECK(place(g, request({}, {"write"}), {kCpu, kFake}, false, &kernels).device("write") == kFake);
}

TEST_CASE("a constant goes with its only consumer, a metadata op with its input") {
  Maker g;
  Port c = g.constant("c", 1);
  Port n = g.add("Neg", "n", {c}, {.device = kFake});
  g.add("Size", "size", {n});
  Port shared = g.add("Draw", "shared");
  g.add("Neg", "m", {shared}, {.device = kFake});
  g.add("Neg", "o", {shared}, {.device = kCpu1});
  Placed p = place(g, request({"n", "size", "m", "o"}), {kCpu, kFake, kCpu1});
  CHECK(p.device("c") == kFake);
  CHECK(p.device("size") == kFake);
  CHECK(p.device("shared") == kCpu);
}

TEST_CASE("a small constant is on every device that reads it, unless it is told where to be") {
  Maker g;
  Port free = g.constant("free", 1);
  Port bound = g.constant("bound", 2, {.device = kCpu});
  Port fetched = g.constant("fetched", 3);
  for (Port c : {free, bound, fetched}) {
    g.add("Neg", g.name(c) + "_m", {c}, {.device = kFake});
    g.add("Add", g.name(c) + "_o", {c, c}, {.device = kCpu1});
  }
  Placed p = place(
      g, request({"free_m", "free_o", "bound_m", "bound_o", "fetched_m", "fetched_o", "fetched"}),
      {kCpu, kFake, kCpu1});
  CHECK(p.device("bound") == kCpu);
  CHECK(p.device("fetched") == kCpu);
  CHECK(count_op(*p.compiled, "Const") == 2 + 1 + 3);
  CHECK(p.compiled->channels.size() == 2);
  Random random(1);
  CHECK(run_plans(*p.compiled, {}, random).fetches == std::vector<float>{-1, 2, -2, 4, -3, 6, 3});
}

TEST_CASE("a generator without a kernel for its consumer's device stays on the default one") {
  KernelIndex kernels = kernels_for({"CPU"});
  kernels.add("Neg", "FAKE", {DType::f32});
  Maker g;
  g.add("Neg", "n", {g.constant("c", 1)}, {.device = kFake});
  Placed p = place(g, request({"n"}), {kCpu, kFake}, false, &kernels);
  CHECK(p.device("n") == kFake);
  CHECK(p.device("c") == kCpu);
}

TEST_CASE("each constraint that cannot be met has an error of its own") {
  KernelIndex cpu_only = kernels_for({"CPU"});
  auto lone = [](const char* device) {
    Maker g;
    g.add("Draw", "d", {}, {.device = device});
    return g;
  };
  CHECK(place(lone("/job:w/flask:1"), request({"d"}), {kCpu}).says("flask"));
  Placed nowhere = place(lone("/job:w/task:7"), request({"d"}), {kCpu, kFake});
  CHECK(nowhere.says("matches none of"));
  CHECK(nowhere.says(kFake));
  CHECK(nowhere.says("toy.cpp:1"));
  Placed kernel = place(lone(kFake), request({"d"}), {kCpu, kFake}, false, &cpu_only);
  CHECK(kernel.says("op 'Draw' of f32 has no kernel on"));
  CHECK(kernel.says("kernels of the op are for: CPU"));
  KernelIndex none;
  CHECK(place(lone(""), request({"d"}), {kCpu}, false, &none).says("no kernel is registered"));

  Maker group;
  group.add("Draw", "a", {}, {.device = kFake});
  group.add("Draw", "b", {}, {.device = kCpu, .colocate = {"a"}});
  Placed conflict = place(group, request({"a", "b"}), {kCpu, kFake});
  CHECK(conflict.says("in node 'b'"));
  CHECK(conflict.says("must share a device with 'a' (toy.cpp:1)"));

  Maker edge;
  Port v = edge.variable("v", {.device = kCpu});
  edge.add("Read", "read", {v}, {.device = kCpu1});
  CHECK(place(edge, request({"read"}), {kCpu, kCpu1}).says("must share a device with 'v'"));
  CHECK(place(edge, request({"read"}), {kCpu, kCpu1}, true).says("differ") == false);
  CHECK_FALSE(place(edge, request({"read"}), {kCpu, kCpu1}, true).compiled.ok());  // other task

  KernelIndex split;
  split.add("Draw", "CPU", {DType::f32});
  split.add("Neg", "FAKE", {DType::f32});
  Maker apart;
  Port d = apart.add("Draw", "d");
  apart.add("Neg", "n", {d}, {.colocate = {"d"}});
  Placed table = place(apart, request({"n"}), {kCpu, kFake}, false, &split);
  CHECK(table.says("kernels on no common one"));
  CHECK(table.says("Draw: CPU; Neg: FAKE"));
}

TEST_CASE("soft placement drops type and index, says so, and never crosses tasks") {
  KernelIndex cpu_only = kernels_for({"CPU"});
  Maker g;
  g.add("Draw", "d", {}, {.device = "/job:w/task:1/cuda:3"});
  Placed p = place(g, request({"d"}), {kCpu, kCpu1}, true);
  CHECK(p.device("d") == kCpu1);
  CHECK(p.noted("cannot be on /job:w/task:1/cuda:3"));
  CHECK(
      p.noted("place: elsewhere: /job:w/task:1/cuda:3, which this job does not have, is "
              "asked for by 'd' ("));
  CHECK(p.noted("): placed on /job:w/task:1/cpu:0 instead"));

  Maker many;
  Port last = many.add("Draw", "d", {}, {.device = "/gpu:0"});
  for (int i = 0; i < 5; ++i)
    last = many.add("Neg", "n" + std::to_string(i), {last}, {.device = "/gpu:0"});
  Placed once = place(many, request({"n4"}), {kCpu}, true);
  CHECK(std::count_if(once.compiled->notes.begin(), once.compiled->notes.end(),
                      [](auto& note) { return note.starts_with(kPlacedElsewhere); }) == 1);
  CHECK(once.noted(") and 5 more nodes: placed on"));

  Maker fake;
  fake.add("Draw", "d", {}, {.device = kFake});
  CHECK(place(fake, request({"d"}), {kCpu1, kCpu, kFake}, true, &cpu_only).device("d") == kCpu);
  CHECK(place(fake, request({"d"}), {kCpu1, kCpu, kFake}, true, &cpu_only)
            .noted("where some nodes cannot be, is asked for by"));
  CHECK_FALSE(place(fake, request({"d"}), {kCpu1, kFake}, true, &cpu_only).compiled.ok());

  Maker group;
  group.add("Draw", "a", {}, {.device = kFake});
  group.add("Draw", "b", {}, {.device = kCpu, .colocate = {"a"}});
  Placed both = place(group, request({"a", "b"}), {kCpu, kFake}, true);
  CHECK(both.device("a") == both.device("b"));
  CHECK(both.noted("must be with it"));
}

TEST_CASE("state that has a place keeps it") {
  Maker g;
  Port v = g.variable("v");
  g.add("Read", "read", {v});
  Target t = target({kCpu, kFake, kCpu1});
  const std::string key = resource_key(g.def.nodes[v.node], toy::ops());
  t.fixed.emplace(key, *DeviceName::parse(kCpu1));
  auto compiled = compile(g.def, request({"read"}), t);
  REQUIRE(compiled.ok());
  CHECK(find(*compiled, "read").plan->device == kCpu1);
  t.fixed[key] = *DeviceName::parse("/job:w/task:9/cpu:0");
  CHECK(compile(g.def, request({"read"}), t).status().code() == Code::failed_precondition);
}

TEST_CASE("a constraint that contradicts the resource's is an error with both lines") {
  for (bool soft : {false, true}) {
    Maker g;
    Port v = g.variable("v", {.device = kFake});
    g.node("Assign", "write", {v, g.constant("c", 1)}, {.device = kCpu});
    Placed p = place(g, request({}, {"write"}), {kCpu, kFake}, soft);
    CHECK(p.says("must share a device with 'v'"));
    CHECK(p.says("toy.cpp:1"));  // the variable's line
    CHECK(p.says("toy.cpp:3"));  // the write's
    CHECK(p.says(kCpu));
    CHECK(p.says(kFake));
  }
}

TEST_CASE("two handles of one resource name one device") {
  Maker g;
  const AttrMap shared = {{"shared_name", Attr(std::string("s"))}};
  Port a = g.variable("a", {.device = kFake, .attrs = shared});
  Port b = g.variable("b", {.device = kCpu, .attrs = shared});
  g.add("Read", "r", {a});
  g.add("Read", "s", {b});
  CHECK(place(g, request({"r", "s"}), {kCpu, kFake}, true).says("must share a device with 'a'"));
}

TEST_CASE("state that was placed under another handle of the same name stays there") {
  Maker g;
  const AttrMap shared = {{"shared_name", Attr(std::string("s"))}};
  Port a = g.variable("a", {.attrs = shared});
  Port b = g.variable("b", {.attrs = shared});
  g.add("Read", "r", {b});
  Target t = target({kCpu, kFake, kCpu1});
  t.fixed.emplace(resource_key(g.def.nodes[a.node], toy::ops()), *DeviceName::parse(kCpu1));
  auto compiled = compile(g.def, request({"r"}), t);
  REQUIRE(compiled.ok());
  CHECK(find(*compiled, "r").plan->device == kCpu1);
}

TEST_CASE("what asks for another device than that of state which is there is refused") {
  const KernelIndex kernels = kernels_for({"CPU", "FAKE"});
  const auto compiled = [&](const char* of_variable, const char* of_read, const char* state,
                            bool soft) {
    Maker g;
    Port v = g.variable("v", {.device = of_variable});
    g.add("Read", "read", {v}, {.device = of_read});
    Target t = target({kCpu, kFake, kCpu1}, &kernels);
    t.soft_placement = soft;
    t.fixed.emplace(resource_key(g.def.nodes[v.node], toy::ops()), *DeviceName::parse(state));
    return compile(g.def, request({"read"}), t);
  };
  for (bool soft : {false, true}) {
    auto elsewhere = compiled("", kFake, kCpu, soft);
    CHECK(elsewhere.status().code() == Code::failed_precondition);
    CHECK(elsewhere.status().text().find("since an earlier request") != std::string::npos);
    CHECK(elsewhere.status().text().find("'v' (toy.cpp:1)") != std::string::npos);
    CHECK(compiled("", "/fake:0", kFake, soft).ok());
    CHECK(compiled("/fake:0", "/fake:0", kCpu, soft).ok() == soft);  // it was relaxed then
    CHECK(compiled("", "/job:w/task:0/device:GPU:0", kCpu, soft).ok() == soft);  // nobody meets it
    CHECK_FALSE(compiled("/fake:0", "/job:w/task:1", kFake, soft).ok());
  }
}
