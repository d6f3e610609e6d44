#include "apps/bench/kernel_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>

#include "devices/cpu/cpu_device.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

struct Case {
  std::string name, op;
  std::vector<Tensor> inputs;
  AttrMap attrs = {};
  double work = 0;  // FLOP or bytes of one call
  std::string unit = "GFLOP/s";
};

// Small numbers without pattern. Zeros would make some kernels faster, denormals all slower.
Tensor numbers(const Shape& shape) {
  Tensor t = value_or_throw(Tensor::make(DType::f32, shape));
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<float>()[i] = float((i * 2654435761u) % 1009) / 504.5f - 1.0f;
  return t;
}

Tensor sizes(const Shape& shape) {
  return Tensor::of<std::int64_t>(Shape{shape.rank()}, shape.dims());
}

void add_matmul(std::vector<Case>& cases, std::int64_t m, std::int64_t k, std::int64_t n, bool ta,
                bool tb) {
  cases.push_back(
      {fmt::format("matmul{}{}.{}x{}x{}", ta ? "_ta" : "", tb ? "_tb" : "", m, k, n),
       "MatMul",
       {numbers(ta ? Shape{k, m} : Shape{m, k}), numbers(tb ? Shape{n, k} : Shape{k, n})},
       {{"transpose_a", ta}, {"transpose_b", tb}},
       2.0 * double(m) * double(k) * double(n)});
}

void add_conv(std::vector<Case>& cases, std::string name, std::int64_t batch, std::int64_t c,
              std::int64_t image, std::int64_t k, std::int64_t filter, std::int64_t stride) {
  const std::int64_t out = (image + stride - 1) / stride;
  const Shape x{batch, image, image, c}, f{filter, filter, c, k}, y{batch, out, out, k};
  const AttrMap attrs{{"strides", std::vector<std::int64_t>{stride, stride}}};
  const double flop = 2.0 * double(y.elements()) * double(filter * filter * c);
  cases.push_back({"conv." + name + ".forward", "Conv2D", {numbers(x), numbers(f)}, attrs, flop});
  cases.push_back({"conv." + name + ".dx",
                   "Conv2DBackpropInput",
                   {sizes(x), numbers(f), numbers(y)},
                   attrs,
                   flop});
  cases.push_back({"conv." + name + ".dfilter",
                   "Conv2DBackpropFilter",
                   {numbers(x), sizes(f), numbers(y)},
                   attrs,
                   flop});
}

void add_memory_bound(std::vector<Case>& cases) {
  const Shape x{64, 28, 28, 32}, y{64, 14, 14, 32};
  const AttrMap pool{{"ksize", std::vector<std::int64_t>{2, 2}},
                     {"strides", std::vector<std::int64_t>{2, 2}}};
  const double large = 4.0 * double(x.elements()), small = large / 4;
  auto add = [&](std::string name, std::string op, std::vector<Tensor> inputs, AttrMap attrs,
                 double bytes) {
    cases.push_back(
        {std::move(name), std::move(op), std::move(inputs), std::move(attrs), bytes, "GB/s"});
  };
  add("max_pool.64x28x28x32", "MaxPool", {numbers(x)}, pool, large + small);
  // Of equal maxima one takes dy: with y not the true maxima the work is the same.
  add("max_pool_grad.64x28x28x32", "MaxPoolGrad", {numbers(x), numbers(y), numbers(y)}, pool,
      2 * large + 2 * small);
  add("avg_pool.64x28x28x32", "AvgPool", {numbers(x)}, pool, large + small);
  add("relu.64x28x28x32", "Relu", {numbers(x)}, {}, 2 * large);
  add("relu_grad.64x28x28x32", "ReluGrad", {numbers(x), numbers(x)}, {}, 3 * large);
  add("bias_add.64x28x28x32", "BiasAdd", {numbers(x), numbers(Shape{32})}, {}, 2 * large);
  add("bias_add_grad.64x28x28x32", "BiasAddGrad", {numbers(x)}, {}, large);
  add("bias_add_grad.100x512", "BiasAddGrad", {numbers(Shape{100, 512})}, {}, 4.0 * 51200);
  Tensor labels = value_or_throw(Tensor::zeros(DType::i64, Shape{100}));
  add("sparse_cross_entropy.100x10", "SparseSoftmaxCrossEntropyWithLogits",
      {numbers(Shape{100, 10}), labels}, {}, 8.0 * 1000);
  add("softmax.1000x1000", "Softmax", {numbers(Shape{1000, 1000})}, {}, 8e6);
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  add_matmul(cases, 100, 784, 512, false, false);
  add_matmul(cases, 784, 100, 512, true, false);
  add_matmul(cases, 100, 512, 512, false, false);
  add_matmul(cases, 512, 100, 512, true, false);
  add_matmul(cases, 100, 512, 512, false, true);
  add_matmul(cases, 100, 512, 10, false, false);
  add_matmul(cases, 64, 3136, 512, false, false);
  add_matmul(cases, 1024, 1024, 1024, false, false);
  add_conv(cases, "64x28x28x1_to_32_5x5", 64, 1, 28, 32, 5, 1);
  add_conv(cases, "64x14x14x32_to_64_5x5", 64, 32, 14, 64, 5, 1);
  add_conv(cases, "64x32x32x16_to_16_3x3", 64, 16, 32, 16, 3, 1);
  add_conv(cases, "32x56x56x64_to_64_3x3", 32, 64, 56, 64, 3, 1);
  add_conv(cases, "32x14x14x256_to_256_3x3", 32, 256, 14, 256, 3, 1);
  add_conv(cases, "32x56x56x64_to_256_1x1", 32, 64, 56, 256, 1, 1);
  add_memory_bound(cases);
  return cases;
}

NodeDef node_of(const Case& c, const OpInfo& op) {
  NodeDef node;
  node.name = c.name;
  node.op = c.op;
  node.attrs = c.attrs;
  node.attrs.emplace("T", DType::f32);
  for (const AttrSpec& a : op.attrs)
    if (a.fallback) node.attrs.emplace(a.name, *a.fallback);
  return node;
}

// Runs on a lane. One kernel as a step would run it: its primitives are made by the first call.
class Runner {
 public:
  Runner(const Case& c, std::unique_ptr<Kernel> kernel, int outputs, Device& device, Lanes& lanes)
      : kernel_(std::move(kernel)),
        place_{.device = &device, .lanes = &lanes},
        inputs_(c.inputs.size()),
        outputs_(std::size_t(outputs)) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].tensor = c.inputs[i];
      indices_.push_back(std::uint32_t(i));
    }
    setup_ = {.slots = inputs_.data(),
              .input_slots = indices_.data(),
              .outputs = outputs_.data(),
              .inputs = std::uint16_t(inputs_.size()),
              .n_outputs = std::uint16_t(outputs_.size()),
              .place = &place_};
  }

  Status call() {
    for (Slot& s : outputs_) s.tensor = {};
    KernelContext ctx(setup_);
    return kernel_->compute(ctx);
  }

  // Seconds of one call, over at least `seconds`.
  Expected<double> round(double seconds) {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    double elapsed = 0;
    for (std::int64_t calls = 1;; ++calls) {
      TROUPE_TRY(call());
      elapsed = std::chrono::duration<double>(Clock::now() - begin).count();
      if (elapsed >= seconds) return elapsed / double(calls);
    }
  }

 private:
  std::unique_ptr<Kernel> kernel_;
  const KernelPlace place_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<std::uint32_t> indices_;
  KernelContext::Setup setup_;
};

Expected<double> measure(const Case& c, const KernelBench& options, Device& device, Lanes& lanes) {
  TROUPE_TRY(const OpInfo* op, ops::builtin().ops.lookup(c.op));
  TROUPE_TRY(auto kernel, ops::builtin().kernels.make(node_of(c, *op), *op, "CPU"));
  Runner runner(c, std::move(kernel), int(op->out.size()), device, lanes);
  for (int i = 0; i < 3; ++i) TROUPE_TRY(runner.call());
  std::vector<double> rounds;
  for (int i = 0; i < options.rounds; ++i) {
    TROUPE_TRY(double seconds, runner.round(options.seconds));
    rounds.push_back(seconds);
  }
  std::sort(rounds.begin(), rounds.end());
  return c.work / rounds[rounds.size() / 2] / 1e9;
}

}  // namespace

Expected<std::vector<KernelRow>> bench_kernels(const KernelBench& options) {
  if (options.rounds < 1 || options.threads < 1)
    return invalid_argument("a benchmark needs at least one round and one thread");
  TROUPE_TRY(DeviceName name, DeviceName::parse("/job:bench/task:0/cpu:0"));
  auto device = make_cpu_device(name, {.threads = options.threads});
  std::vector<KernelRow> rows;
  for (const Case& c : all_cases()) {
    std::string row = fmt::format("kernels.{}.t{}", c.name, options.threads);
    if (row.find(options.only) == std::string::npos) continue;
    std::promise<Expected<double>> promise;
    auto answer = promise.get_future();
    device->launch([&](Lanes& lanes) { promise.set_value(measure(c, options, *device, lanes)); });
    TROUPE_TRY(double value, answer.get());
    rows.push_back({std::move(row), value, c.unit});
  }
  return rows;
}

}  // namespace troupe
