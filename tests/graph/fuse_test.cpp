// A convolution or a product of matrices, its bias and Relu become one node on a device that has a
// kernel for it, unless something else needs what is between them.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "graph/compile.hpp"
#include "tests/graph/sample_ops.hpp"

using namespace troupe;

namespace {

constexpr const char* kFuseCpu = "/job:w/task:0/cpu:0";
constexpr const char* kFuseGpu = "/job:w/task:0/cuda:0";
constexpr const char* kFuseOtherGpu = "/job:w/task:0/cuda:1";

bool is_fused(const std::string& op) { return op == "_Conv2DBias" || op == "_MatMulBias"; }

const OpRegistry& fusing_ops() {
  static const OpRegistry all = [] {
    OpRegistry r = sample::registry();
    const auto add = [&](std::string name, std::vector<std::string> in, bool relu) {
      OpDef def{.name = std::move(name),
                .in = std::move(in),
                .out = {"y"},
                .types = "f32 f64",
                .shape = same_shape,
                .no_gradient = "none is asked for"};
      if (relu) def.attrs = {"relu: bool = false"};
      throw_if_error(r.add(std::move(def)));
    };
    add("Conv2D", {"x", "filter"}, false);
    add("BiasAdd", {"x", "bias"}, false);
    add("Relu", {"x"}, false);
    add("_Conv2DBias", {"x", "filter", "bias"}, true);
    add("_MatMulBias", {"a", "b", "bias"}, true);
    return r;
  }();
  return all;
}

// Kernels of a CPU and of a GPU, whose fused one knows f32 alone.
const KernelIndex& fusing_kernels() {
  static const KernelIndex all = [] {
    KernelIndex index;
    for (const char* device : {"CPU", "CUDA"})
      for (const OpInfo* op : fusing_ops().all())
        if (!is_fused(op->def.name)) index.add(op->def.name, device, {});
    for (const char* fused : {"_Conv2DBias", "_MatMulBias"}) {
      index.add(fused, "CPU", {});
      index.add(fused, "CUDA", {DType::f32});
    }
    index.rank("CUDA", 0);
    index.rank("CPU", 1);
    return index;
  }();
  return all;
}

// conv -> bias -> relu, on fed values; conv is a Conv2D, or what is asked for.
struct Convolved {
  GraphBuilder g{fusing_ops()};
  Output x, filter, b, conv, bias, relu;
  Op first;  // of the three
  CompileRequest request;
  Target target;

  explicit Convolved(DType dtype = DType::f32, const char* device = kFuseGpu,
                     const char* of_bias = nullptr, const char* op = "Conv2D") {
    const auto node = [&](const char* op, std::vector<Output> inputs, const char* name,
                          const char* where) {
      return g.add({.op = op, .inputs = std::move(inputs), .name = name, .device = where});
    };
    for (Output* fed : {&x, &filter, &b})
      *fed = g.add("Placeholder", {}, {{"T", dtype}, {"shape", PartialShape()}});
    first = node(op, {x, filter}, "conv", device);
    conv = first.output();
    bias = node("BiasAdd", {conv, b}, "bias", of_bias ? of_bias : device).output();
    relu = node("Relu", {bias}, "relu", device).output();
    for (const Output& fed : {x, filter, b}) request.feeds.push_back({g.node(fed.node()).name});
    request.fetches = {{"relu"}};
    target.ops = &fusing_ops();
    target.kernels = &fusing_kernels();
    target.devices = {{*DeviceName::parse(kFuseGpu), MemorySpace::device},
                      {*DeviceName::parse(kFuseOtherGpu), MemorySpace::device},
                      {*DeviceName::parse(kFuseCpu)}};
  }

  // The nodes of such ops that the step runs, in order; what is fused as "NAME:OP", with '+' for
  // Relu.
  std::vector<std::string> compiled() const {
    const auto made = compile(g.def(), request, target);
    REQUIRE_MESSAGE(made.ok(), made.status().text());
    std::vector<std::string> all;
    for (const Plan& plan : made->plans)
      for (const PlanInfo& info : plan.info) {
        const auto relu_attr = info.def.attrs.find("relu");
        const std::string& op = info.def.op;
        if (is_fused(op))
          all.push_back(info.def.name + ":" + op + (*relu_attr->second.get<bool>() ? "+" : ""));
        else if (op == "Conv2D" || op == "MatMul" || op == "BiasAdd" || op == "Relu")
          all.push_back(info.def.name);
      }
    std::sort(all.begin(), all.end());
    return all;
  }
};

using FusedNames = std::vector<std::string>;
const FusedNames kUnfused{"bias", "conv", "relu"};

}  // namespace

TEST_CASE("a convolution on a GPU takes its bias and Relu") {
  CHECK(Convolved().compiled() == FusedNames{"conv:_Conv2DBias+"});
}

TEST_CASE("a product of matrices on a GPU takes its bias and Relu") {
  const auto chain = [](DType dtype = DType::f32, const char* device = kFuseGpu) {
    return Convolved(dtype, device, nullptr, "MatMul");
  };
  CHECK(chain().compiled() == FusedNames{"conv:_MatMulBias+"});
  Convolved bias = chain();
  bias.request.fetches = {{"bias"}};
  CHECK(bias.compiled() == FusedNames{"conv:_MatMulBias"});
  bias.request.fetches = {{"bias"}, {"relu"}};
  CHECK(bias.compiled() == FusedNames{"conv:_MatMulBias", "relu"});
  Convolved product = chain();
  product.request.fetches = {{"conv"}, {"relu"}};
  CHECK(product.compiled() == kUnfused);
  CHECK(chain(DType::f64).compiled() == kUnfused);
  CHECK(chain(DType::f32, kFuseCpu).compiled() == kUnfused);
}

TEST_CASE(
    "a product whose second factor is the sum of another product and its bias is fused, too") {
  Convolved chain(DType::f32, kFuseGpu, nullptr, "MatMul");
  const auto node = [&](const char* op, std::vector<Output> inputs, const char* name) {
    return chain.g.add({.op = op, .inputs = std::move(inputs), .name = name, .device = kFuseGpu})
        .output();
  };
  const Output second = node("MatMul", {chain.x, chain.relu}, "second");
  node("BiasAdd", {second, chain.b}, "sums");
  chain.request.fetches = {{"sums"}};
  CHECK(chain.compiled() == FusedNames{"conv:_MatMulBias+", "second:_MatMulBias"});
  // What is added to is the first input of BiasAdd alone.
  node("BiasAdd", {chain.x, chain.conv}, "as_bias");
  chain.request.fetches = {{"as_bias"}};
  CHECK(chain.compiled() == FusedNames{"as_bias", "conv"});
}

TEST_CASE("a convolution on a GPU takes its bias where no Relu follows on it") {
  Convolved chain;
  chain.request.fetches = {{"bias"}};
  CHECK(chain.compiled() == FusedNames{"conv:_Conv2DBias"});
}

TEST_CASE("Relu of a sum that is fetched, waited for or read elsewhere stays") {
  const std::vector<std::function<void(Convolved&)>> uses = {
      [](Convolved& c) { c.request.fetches.push_back({"bias"}); },
      [](Convolved& c) { c.request.targets.push_back("bias"); },
      [](Convolved& c) {
        c.g.add({.op = "Relu", .inputs = {c.bias}, .name = "again", .device = kFuseOtherGpu});
        c.request.fetches.push_back({"again"});
      },
  };
  for (const auto& use : uses) {
    Convolved chain;
    use(chain);
    const FusedNames names = chain.compiled();
    CHECK(std::count(names.begin(), names.end(), "conv:_Conv2DBias") == 1);
    CHECK(std::count(names.begin(), names.end(), "relu") == 1);
  }
}

TEST_CASE("a convolution that is fetched, waited for or read elsewhere stays") {
  const std::vector<std::function<void(Convolved&)>> uses = {
      [](Convolved& c) { c.request.fetches.push_back({"conv"}); },
      [](Convolved& c) { c.request.targets.push_back("conv"); },
      [](Convolved& c) {  // such as a gradient
        c.g.add({.op = "BiasAdd", .inputs = {c.relu, c.conv}, .name = "late", .device = kFuseGpu});
        c.request.fetches.push_back({"late"});
      },
      [](Convolved& c) {
        c.g.add({.op = "Relu", .inputs = {c.x}, .name = "after", .control = {c.first}});
        c.request.fetches.push_back({"after"});
      },
  };
  for (const auto& use : uses) {
    Convolved chain;
    use(chain);
    const FusedNames names = chain.compiled();
    for (const char* part : {"conv", "bias", "relu"})
      CHECK(std::count(names.begin(), names.end(), part) == 1);
  }
}

TEST_CASE("a type without a fused kernel, a CPU and parts on several devices keep the parts") {
  CHECK(Convolved(DType::f64).compiled() == kUnfused);
  CHECK(Convolved(DType::f32, kFuseCpu).compiled() == kUnfused);
  CHECK(Convolved(DType::f32, kFuseGpu, kFuseOtherGpu).compiled() == kUnfused);
  Convolved chain;
  chain.target.disabled = {"fuse"};
  CHECK(chain.compiled() == kUnfused);
}

TEST_CASE("what is fused waits for all that its parts waited for") {
  Convolved chain;
  GraphBuilder& g = chain.g;
  const Op first = g.add({.op = "Relu", .inputs = {chain.x}, .name = "first", .device = kFuseGpu});
  const Output conv =
      g.add(
           {.op = "Conv2D", .inputs = {chain.x, chain.filter}, .name = "conv2", .device = kFuseGpu})
          .output();
  const Output bias = g.add({.op = "BiasAdd",
                             .inputs = {conv, chain.b},
                             .name = "bias2",
                             .control = {first},
                             .device = kFuseGpu})
                          .output();
  g.add({.op = "Relu", .inputs = {bias}, .name = "relu2", .device = kFuseGpu});
  chain.request.fetches = {{"relu2"}};
  CHECK(chain.compiled() == FusedNames{"conv2:_Conv2DBias+", "first"});
  const auto made = compile(g.def(), chain.request, chain.target);
  for (const Plan& plan : made->plans)
    for (std::size_t i = 0; i < plan.nodes.size(); ++i)
      // The copies of what is fed, and `first`.
      if (plan.info[i].def.op == "_Conv2DBias") CHECK(plan.pending[i] == 4);
}
