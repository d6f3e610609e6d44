// Where nodes that take lists go.
#include <doctest/doctest.h>

#include "graph/compile.hpp"
#include "graph/node_query.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

constexpr const char* kFirst = "/job:w/task:0/cpu:0";
constexpr const char* kSecond = "/job:w/task:1/cpu:0";

const OpRegistry& placement_ops() {
  static const OpRegistry all = [] {
    OpRegistry r = sample::registry();
    throw_if_error(r.add({.name = "ListOf",
                          .in = {"x"},
                          .out = {"list: list"},
                          .types = "f32",
                          .shape = same_shape}));
    throw_if_error(r.add({.name = "Both2",
                          .in = {"a: list", "b: list"},
                          .out = {"list: list"},
                          .shape = same_shape}));
    throw_if_error(
        r.add({.name = "Length", .in = {"list: list"}, .out = {"n: i64"}, .shape = scalar_shape}));
    return r;
  }();
  return all;
}

struct Placing {
  Placing() : g(placement_ops()) {
    target.ops = &placement_ops();
    for (const char* name : {kFirst, kSecond}) target.devices.push_back({*DeviceName::parse(name)});
    x = sample::placeholder(g, "x", PartialShape::scalar());
  }
  Output add(std::string op, std::string name, std::vector<Output> inputs, std::string device = {},
             std::vector<std::string> colocate = {}) {
    NodeSpec spec{.op = std::move(op), .inputs = std::move(inputs), .name = std::move(name)};
    spec.device = std::move(device);
    spec.colocate = std::move(colocate);
    return g.add(std::move(spec)).output();
  }
  // Where a node is in a step that fetches it.
  std::string device_of(const Output& y, const std::vector<Op>& targets = {}) {
    CompileRequest request;
    request.feeds = {{"x", 0, false}};
    request.fetches = {{g.node(y.node()).name, 0, false}};
    for (const Op& op : targets) request.targets.push_back(op.name());
    auto compiled = compile(g.def(), request, target);
    REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
    for (const Plan& plan : compiled->plans)
      for (const PlanInfo& info : plan.info)
        if (info.def.name == g.node(y.node()).name) return plan.device;
    return "";
  }

  GraphBuilder g;
  Target target;
  Output x;
};

}  // namespace

TEST_CASE("whoever takes a list and names no device goes where it is made") {
  Placing p;
  Output list = p.add("ListOf", "list", {p.x}, kSecond);
  CHECK(p.device_of(p.add("Length", "n", {list})) == kSecond);
}

TEST_CASE("a list goes to whoever takes it and names another device") {
  Placing p;
  Output list = p.add("ListOf", "list", {p.x}, kSecond);
  CHECK(p.device_of(p.add("Length", "n", {list}, kFirst)) == kFirst);
}

TEST_CASE("lists that are made on two devices meet on that of the first one") {
  Placing p;
  Output a = p.add("ListOf", "a", {p.x}, kSecond), b = p.add("ListOf", "b", {p.x}, kFirst);
  Output both = p.add("Both2", "both", {a, b});
  CHECK(p.device_of(p.add("Length", "n", {both})) == kSecond);
}

TEST_CASE("a list goes to whoever must be with state that has its place") {
  Placing p;
  Output v = p.g.add("Variable", {}, {{"dtype", DType::f32}, {"shape", PartialShape::scalar()}});
  Op set = p.g.add(NodeSpec{.op = "Assign", .inputs = {v, p.x}});
  Output list = p.add("ListOf", "list", {p.x}, kFirst);
  Output n = p.add("Length", "n", {list}, "", {p.g.node(v.node()).name});
  p.target.fixed.emplace(resource_key(p.g.node(v.node()), placement_ops()),
                         *DeviceName::parse(kSecond));
  CHECK(p.device_of(n, {set}) == kSecond);
}
