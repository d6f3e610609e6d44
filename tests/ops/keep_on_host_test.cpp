// Integers on a GPU's side of a program: those that the host has stay in its memory.
#include <doctest/doctest.h>

#include "graph/node_query.hpp"
#include "ops/api.hpp"
#include "ops/compile_host.hpp"

using namespace troupe;

namespace {

constexpr const char* kCpu = "/job:worker/task:0/cpu:0";
constexpr const char* kGpu = "/job:worker/task:0/cuda:0";

struct Compiled {
  CompiledGraph plans;

  struct Found {
    std::string device;
    bool on_host = false;
  };
  Found find(std::string_view name) const {
    for (const Plan& plan : plans.plans)
      for (const PlanInfo& info : plan.info)
        if (info.name == name) return {plan.device, on_host(info.def)};
    FAIL("no node ", name);
    return {};
  }
  bool stays(std::string_view name) const {
    const Found found = find(name);
    CHECK(found.device == kGpu);
    return found.on_host;
  }
  // Copies between host and device, one way.
  int copies(bool to_device) const {
    int count = 0;
    for (const Plan& plan : plans.plans)
      for (const PlanInfo& info : plan.info)
        count += info.def.op == kCopyOp && *info.def.attrs.at("to_device").get<bool>() == to_device;
    return count;
  }
};

Compiled compile_on(const Graph& g, std::initializer_list<Output> fetches,
                    std::initializer_list<Output> feeds = {}) {
  CompileHost host(ops::builtin());
  Target target = host.target();
  for (const char* name : {kCpu, kGpu}) {
    const DeviceName device = DeviceName::parse(name).value();
    target.devices.push_back({device, ops::builtin().devices.find(*device.type)->space});
  }
  CompileRequest request;
  for (const Output& y : fetches) request.fetches.push_back(PortName::parse(y.name()).value());
  for (const Output& x : feeds) request.feeds.push_back(PortName::parse(x.name()).value());
  auto compiled = compile(g.def(), request, target);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().text());
  return {std::move(compiled).value()};
}

Output node(Graph& g, const char* op, const char* name, std::vector<Output> inputs,
            AttrMap attrs = {}) {
  return g.add({.op = op, .inputs = std::move(inputs), .attrs = std::move(attrs), .name = name})
      .output();
}
Output ints(Graph& g, std::initializer_list<std::int64_t> values) {
  return constant(g, Tensor::of<std::int64_t>(Shape{std::int64_t(values.size())}, values));
}

}  // namespace

TEST_CASE("what is computed of shapes stays in host memory, beside the GPU") {
  Graph g;
  Output x = placeholder<float>(g, {-1, -1}, "x");
  Output y = exp(x);
  Output rows = node(g, "Slice", "rows", {g.add("Shape", {y}), ints(g, {0}), ints(g, {1})});
  Output shape = node(g, "Concat", "shape", {rows, ints(g, {2, -1})});
  // Without a kernel for GPUs: it comes to the device all the same.
  Output half = node(g, "FloorDiv", "half", {g.add("Size", {y}), constant(g, std::int64_t{2})});
  Output z = g.add("Reshape", {y, shape}) * cast<float>(half);
  const Compiled compiled = compile_on(g, {exp(z)}, {x});
  CHECK(compiled.plans.plans.size() == 1);
  for (const char* name : {"rows", "shape", "half"}) CHECK(compiled.stays(name));
  CHECK(compiled.copies(false) == 1);  // of the result alone
}

TEST_CASE("labels that only the host reads stay there, those that the GPU reads do not") {
  Graph g;
  Output labels = placeholder<std::int64_t>(g, {-1, 4}, "labels");
  Output logits = placeholder<float>(g, {-1, 10}, "logits");
  Output turned =
      node(g, "Transpose", "turned", {labels}, {{"perm", std::vector<std::int64_t>{1, 0}}});
  Output flat = g.add("Reshape", {turned, ints(g, {-1})});
  Output loss = mean(softmax_cross_entropy(relu(logits), flat));
  Output right = cast<float>(node(g, "Add", "doubled", {labels, labels}));
  const Compiled compiled = compile_on(g, {exp(loss), exp(right)}, {labels, logits});
  CHECK(compiled.stays("turned"));
  CHECK_FALSE(compiled.stays("doubled"));
  CHECK(compiled.copies(false) == 2);
}

TEST_CASE("large results are not computed beside the GPU") {
  Graph g;
  Output x = placeholder<float>(g, {-1}, "x");
  Output y = exp(x);
  const auto filled = [&](const char* name, std::int64_t n) {
    return node(g, "BroadcastTo", name, {g.add("Size", {y}), ints(g, {n})});
  };
  Output few = cast<float>(filled("few", 8)), many = cast<float>(filled("many", 1 << 20));
  const Compiled compiled = compile_on(g, {exp(few), exp(many)}, {x});
  CHECK(compiled.stays("few"));
  CHECK_FALSE(compiled.stays("many"));
}

TEST_CASE("a chain behind what does not stay follows it, node by node") {
  Graph g;
  Output x = placeholder<float>(g, {-1}, "x");
  Output many = g.add("BroadcastTo", {g.add("Size", {exp(x)}), ints(g, {1 << 20})});
  Output next = node(g, "Sum", "first", {many}, {{"axes", std::vector<std::int64_t>{0}}});
  for (int i = 0; i < 1000; ++i) next = next + 1;
  next = node(g, "Neg", "last", {next});
  const Compiled compiled = compile_on(g, {exp(cast<float>(next))}, {x});
  for (const char* name : {"first", "last"}) CHECK_FALSE(compiled.stays(name));
}

TEST_CASE("what a compilation computes ahead takes no more than so much memory") {
  Graph g;
  // Few bytes ask for gigabytes, and their number is known to the kernel alone.
  const Output y =
      dynamic_stitch({ints(g, {0, std::int64_t{1} << 32})}, {constant(g, {true, false})});
  CompileHost host(ops::builtin());
  const NodeDef& node = g.node(y.node());
  const auto values =
      host.target().evaluate(node, {Tensor::of<std::int64_t>(Shape{2}, {0, std::int64_t{1} << 32}),
                                    Tensor::of(Shape{2}, {true, false})});
  CHECK(values.status().code() == Code::resource_exhausted);
}
