// Rows of a large variable are picked where it is.
#include <doctest/doctest.h>

#include "graph/compile.hpp"
#include "graph/node_query.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

constexpr const char* kTask0 = "/job:w/task:0/cpu:0";
constexpr const char* kTask1 = "/job:w/task:1/cpu:0";

const OpRegistry& picking_ops() {
  static const OpRegistry all = [] {
    OpRegistry r = sample::registry();
    throw_if_error(r.add({.name = "Gather",
                          .in = {"params", "indices: i64"},
                          .out = {"y"},
                          .types = "f32",
                          .attrs = {"shape: shape"},
                          .shape = sample::attr_shape}));
    throw_if_error(r.add({.name = "DrawIds",
                          .out = {"ids: i64"},
                          .shape = scalar_shape,
                          .no_gradient = "drawn",
                          .random = true}));
    return r;
  }();
  return all;
}

struct Picking {
  GraphBuilder g{picking_ops()};
  Output y;

  Picking(PartialShape table, PartialShape rows, std::string device = {}) {
    const Output v = g.add("Variable", {}, {{"dtype", DType::f32}, {"shape", table}});
    const Output read = g.add("ReadVariable", {v}, {{"dtype", DType::f32}, {"shape", table}});
    NodeSpec gather{.op = "Gather",
                    .inputs = {read, g.add("DrawIds", {})},
                    .attrs = {{"shape", rows}},
                    .name = "gather"};
    gather.device = std::move(device);
    y = g.add(std::move(gather)).output();
    variable = v.node();
  }
  // Where each copy of the lookup is, with the variable on the second task.
  std::vector<std::string> devices(std::int32_t replicas) const {
    Target target;
    target.ops = &picking_ops();
    for (const char* name : {kTask0, kTask1}) target.devices.push_back({*DeviceName::parse(name)});
    target.fixed.emplace(resource_key(g.node(variable), picking_ops()), *DeviceName::parse(kTask1));
    CompileRequest request;
    request.fetches = {{"gather", 0, false}};
    request.replicas = replicas;
    // A copy that nobody fetches is not left out by a target.
    request.targets = {"gather"};
    auto compiled = compile(g.def(), request, target);
    REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
    std::vector<std::string> out;
    for (const Plan& plan : compiled->plans)
      for (const PlanInfo& info : plan.info)
        if (info.def.op == "Gather") out.push_back(plan.device);
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  NodeId variable = kNoNode;
};

using Devices = std::vector<std::string>;

}  // namespace

TEST_CASE("rows of a large variable are picked where it is, in each replica") {
  CHECK(Picking({1000, 8}, {64, 8}).devices(1) == Devices{kTask1});
  CHECK(Picking({1000, 8}, {64, 8}).devices(2) == Devices{kTask1, kTask1});
  // Of a number that is not known: by the size of the variable.
  CHECK(Picking({1 << 13, 8}, {-1, 8}).devices(2) == Devices{kTask1, kTask1});
}

TEST_CASE("rows that are more than their variable, or told where to be, are picked elsewhere") {
  CHECK(Picking({10, 8}, {64, 8}).devices(2) == Devices{kTask0, kTask1});
  CHECK(Picking({10, 8}, {-1, 8}).devices(2) == Devices{kTask0, kTask1});
  CHECK(Picking({1000, 8}, {64, 8}, kTask0).devices(1) == Devices{kTask0});
}
