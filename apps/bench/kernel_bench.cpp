#include "apps/bench/kernel_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <span>

#include "devices/cpu/cpu_device.hpp"
#include "ops/op.hpp"

namespace troupe {
namespace {

// An input that is made when its kernel is measured: of all of them the memory would be gigabytes.
struct Input {
  Shape shape = {};
  DType dtype = DType::f32;
  double low = -1, high = 1;
  Tensor given = {};
};

struct Case {
  std::string name;
  std::string op;
  AttrMap attrs = {};
  std::vector<Input> inputs;
  double work = 0;  // FLOP or bytes of one call
  std::string unit = "GFLOP/s";
  std::string peer = {};
};

// Small numbers without pattern. Zeros would make some kernels faster, denormals all slower.
Tensor numbers(const Input& input) {
  if (input.given.defined()) return input.given;
  Tensor t = value_or_throw(Tensor::make(DType::f32, input.shape));
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<float>()[i] =
        float(input.low + (input.high - input.low) * double((i * 2654435761u) % 1009) / 1009);
  return t;
}

Input sizes(const Shape& shape) {
  return {.given = Tensor::of<std::int64_t>(Shape{shape.rank()}, shape.dims())};
}

void add_matmul(std::vector<Case>& cases, std::int64_t m, std::int64_t k, std::int64_t n, bool ta,
                bool tb) {
  cases.push_back({fmt::format("matmul{}{}.{}x{}x{}", ta ? "_ta" : "", tb ? "_tb" : "", m, k, n),
                   "MatMul",
                   {{"transpose_a", ta}, {"transpose_b", tb}},
                   {{ta ? Shape{k, m} : Shape{m, k}}, {tb ? Shape{n, k} : Shape{k, n}}},
                   2.0 * double(m) * double(k) * double(n)});
}

void add_conv(std::vector<Case>& cases, std::string name, std::int64_t batch, std::int64_t c,
              std::int64_t image, std::int64_t k, std::int64_t filter, std::int64_t stride) {
  const std::int64_t out = (image + stride - 1) / stride;
  const Shape x{batch, image, image, c}, f{filter, filter, c, k}, y{batch, out, out, k};
  const AttrMap attrs{{"strides", std::vector<std::int64_t>{stride, stride}}};
  const double flop = 2.0 * double(y.elements()) * double(filter * filter * c);
  cases.push_back({"conv." + name + ".forward", "Conv2D", attrs, {{x}, {f}}, flop});
  cases.push_back(
      {"conv." + name + ".dx", "Conv2DBackpropInput", attrs, {sizes(x), {f}, {y}}, flop});
  cases.push_back(
      {"conv." + name + ".dfilter", "Conv2DBackpropFilter", attrs, {{x}, sizes(f), {y}}, flop});
}

void add_memory_bound(std::vector<Case>& cases) {
  const Shape x{64, 28, 28, 32}, y{64, 14, 14, 32};
  const AttrMap pool{{"ksize", std::vector<std::int64_t>{2, 2}},
                     {"strides", std::vector<std::int64_t>{2, 2}}};
  const double large = 4.0 * double(x.elements()), small = large / 4;
  auto add = [&](std::string name, std::string op, std::vector<Input> inputs, AttrMap attrs,
                 double bytes) {
    cases.push_back(
        {std::move(name), std::move(op), std::move(attrs), std::move(inputs), bytes, "GB/s"});
  };
  add("max_pool.64x28x28x32", "MaxPool", {{x}}, pool, large + small);
  // Of equal maxima one takes dy: with y not the true maxima the work is the same.
  add("max_pool_grad.64x28x28x32", "MaxPoolGrad", {{x}, {y}, {y}}, pool, 2 * large + 2 * small);
  add("avg_pool.64x28x28x32", "AvgPool", {{x}}, pool, large + small);
  add("relu.64x28x28x32", "Relu", {{x}}, {}, 2 * large);
  add("relu_grad.64x28x28x32", "ReluGrad", {{x}, {x}}, {}, 3 * large);
  add("bias_add.64x28x28x32", "BiasAdd", {{x}, {Shape{32}}}, {}, 2 * large);
  add("bias_add_grad.64x28x28x32", "BiasAddGrad", {{x}}, {}, large);
  add("bias_add_grad.100x512", "BiasAddGrad", {{Shape{100, 512}}}, {}, 4.0 * 51200);
  Tensor labels = value_or_throw(Tensor::zeros(DType::i64, Shape{100}));
  add("sparse_cross_entropy.100x10", "SparseSoftmaxCrossEntropyWithLogits",
      {{Shape{100, 10}}, {.given = labels}}, {}, 8.0 * 1000);
  add("softmax.1000x1000", "Softmax", {{Shape{1000, 1000}}}, {}, 8e6);
}

// What stands beside PyTorch (torch_kernels.py), in ms a call.
void add_compared(std::vector<Case>& cases) {
  const std::int64_t million = 1 << 20;
  auto add = [&](std::string name, std::vector<Input> inputs, std::string op, AttrMap attrs = {}) {
    cases.push_back({.name = name,
                     .op = std::move(op),
                     .attrs = std::move(attrs),
                     .inputs = std::move(inputs),
                     .unit = "ms",
                     .peer = name});
  };
  const Input x{{million}}, positive{{million}, DType::f32, 0.1, 1.1};
  const Input square{{1024, 1024}};
  auto in_type = [](Input input, DType dtype) { return input.dtype = dtype, input; };
  for (auto [name, op] : {std::pair{"erf", "Erf"},
                          {"log1p", "Log1p"},
                          {"sin", "Sin"},
                          {"cos", "Cos"},
                          {"exp", "Exp"},
                          {"softplus", "Softplus"}})
    add(name, {x}, op);
  add("exp_f64", {in_type(x, DType::f64)}, "Exp");
  add("pow", {positive, x}, "Pow");
  add("cast_bf16", {x}, "Cast", {{"to", DType::bf16}});
  add("add_bf16", {in_type(x, DType::bf16), in_type(x, DType::bf16)}, "Add");
  using Axes = std::vector<std::int64_t>;
  add("max_of_rows", {square}, "Max", {{"axes", Axes{1}}});
  add("max_of_columns", {square}, "Max", {{"axes", Axes{0}}});
  add("sum_of_rows", {square}, "Sum", {{"axes", Axes{1}}});
  add("sum_of_columns", {square}, "Sum", {{"axes", Axes{0}}});
  add("mean_of_images", {{{32, 32, 32, 32}}}, "Mean", {{"axes", Axes{1, 2}}});
  add("normal", {}, "RandomStandardNormal", {{"shape", PartialShape{million}}});
  add("reverse", {square}, "Reverse", {{"axes", Axes{1}}});
  add("transpose", {square}, "Transpose");
  add("softmax", {{{1000, 1000}}}, "Softmax");
  add("log_softmax", {{{1000, 1000}}}, "LogSoftmax");
  add("layer_norm", {square, {{1024}}, {{1024}}}, "LayerNorm", {{"epsilon", 1e-5}});
  add("layer_norm_grad", {square, square, {{1024}}}, "LayerNormGrad", {{"epsilon", 1e-5}});
  const Input pictures{{16, 32, 32, 64}};
  add("group_norm_grad", {pictures, pictures, {{64}}}, "GroupNormGrad", {{"groups", 8}});
  for (DType dtype : {DType::f16, DType::bf16}) {
    const std::string name(dtype_name(dtype));
    const Input one = in_type({{512, 512}}, dtype), many = in_type({{8, 256, 256}}, dtype);
    add("matmul_" + name, {one, one}, "MatMul");
    add("batch_matmul_" + name, {many, many}, "BatchMatMul");
  }
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
  add_compared(cases);
  return cases;
}

// The case's node, as a graph would have it.
NodeDef node_of(const Case& c, const OpInfo& op, const std::vector<DType>& inputs) {
  NodeDef def;
  def.name = c.name;
  def.op = c.op;
  def.attrs = c.attrs;
  for (std::size_t i = 0; i < op.in.size() && i < inputs.size(); ++i)
    if (op.in[i].kind == ArgSpec::Kind::attr) def.attrs.emplace(op.in[i].type_attr, inputs[i]);
  for (const AttrSpec& a : op.attrs)
    if (a.fallback) def.attrs.emplace(a.name, *a.fallback);
  return def;
}

// Runs on a lane. The kernel of a case as a step would run it: its primitives are made by the first
// call.
class Runner {
 public:
  static Expected<std::unique_ptr<Runner>> make(const Case& c, Device& device, Lanes& lanes) {
    auto runner = std::unique_ptr<Runner>(new Runner(device, lanes));
    std::vector<DType> types;
    for (const Input& input : c.inputs) {
      TROUPE_TRY(Tensor value, runner->in_its_type(input));
      types.push_back(value.dtype());
      runner->order_.push_back(std::uint32_t(runner->order_.size()));
      runner->values_.push_back({.tensor = std::move(value)});
    }
    TROUPE_TRY(const OpInfo* op, ops::builtin().ops.lookup(c.op));
    TROUPE_TRY(runner->kernel_, ops::builtin().kernels.make(node_of(c, *op, types), *op, "CPU"));
    runner->values_.resize(types.size() + op->out.size());
    return runner;
  }

  Status call() {
    const std::span<Slot> outputs = std::span(values_).subspan(order_.size());
    for (Slot& output : outputs) output.tensor = {};
    KernelContext ctx({.slots = values_.data(),
                       .input_slots = order_.data(),
                       .outputs = outputs.data(),
                       .inputs = std::uint16_t(order_.size()),
                       .n_outputs = std::uint16_t(outputs.size()),
                       .place = &place_});
    return kernel_->compute(ctx);
  }

  // The median of the calls of `seconds`, in seconds: what else the machine does strikes a few.
  Expected<double> round(double seconds, Lanes& lanes) {
    place_.lanes = &lanes;
    using Clock = std::chrono::steady_clock;
    std::vector<double> calls;
    for (const auto begin = Clock::now();;) {
      const auto from = Clock::now();
      TROUPE_TRY(call());
      const auto to = Clock::now();
      calls.push_back(std::chrono::duration<double>(to - from).count());
      if (std::chrono::duration<double>(to - begin).count() >= seconds) break;
    }
    const auto middle = calls.begin() + std::ptrdiff_t(calls.size() / 2);
    std::nth_element(calls.begin(), middle, calls.end());
    return *middle;
  }

 private:
  Runner(Device& device, Lanes& lanes) : place_{.device = &device, .lanes = &lanes} {}

  // By the kernel that casts.
  Expected<Tensor> in_its_type(const Input& input) {
    Tensor value = numbers(input);
    if (input.given.defined() || input.dtype == value.dtype()) return value;
    const Case cast{
        .name = "cast", .op = "Cast", .attrs = {{"to", input.dtype}}, .inputs = {{.given = value}}};
    TROUPE_TRY(auto runner, make(cast, *place_.device, *place_.lanes));
    TROUPE_TRY(runner->call());
    return runner->values_[1].tensor;
  }

  KernelPlace place_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Slot> values_;          // inputs, then outputs
  std::vector<std::uint32_t> order_;  // of the inputs
};

// Work on the first lane of `device`, from a thread that is none.
template <class T>
Expected<T> on_lane(Device& device, FunctionRef<Expected<T>(Lanes&)> work) {
  std::promise<Expected<T>> promise;
  auto answer = promise.get_future();
  device.launch([&](Lanes& lanes) { promise.set_value(work(lanes)); });
  return answer.get();
}

Status measure(const Case& c, const KernelBench& options, Device& device,
               const KernelTurn& after_round, KernelRow& row) {
  TROUPE_TRY(auto runner, on_lane<std::unique_ptr<Runner>>(
                              device, [&](Lanes& lanes) -> Expected<std::unique_ptr<Runner>> {
                                TROUPE_TRY(auto made, Runner::make(c, device, lanes));
                                for (int i = 0; i < 3; ++i) TROUPE_TRY(made->call());
                                return made;
                              }));
  for (int i = 0; i < options.rounds; ++i) {
    TROUPE_TRY(double seconds, on_lane<double>(device, [&](Lanes& lanes) {
                 return runner->round(options.seconds, lanes);
               }));
    row.rounds.push_back(c.unit == "ms" ? 1e3 * seconds : c.work / seconds / 1e9);
    if (after_round) TROUPE_TRY(after_round());
  }
  std::vector<double> sorted = row.rounds;
  std::sort(sorted.begin(), sorted.end());
  row.value = sorted[sorted.size() / 2];
  return ok_status();
}

std::vector<std::pair<Case, KernelRow>> wanted_rows(const KernelBench& options) {
  std::vector<std::pair<Case, KernelRow>> wanted;
  for (Case& c : all_cases()) {
    std::string name = fmt::format("kernels.{}.t{}", c.name, options.threads);
    if (name.find(options.only) == std::string::npos) continue;
    KernelRow row{.name = std::move(name), .unit = c.unit, .peer = c.peer};
    wanted.emplace_back(std::move(c), std::move(row));
  }
  return wanted;
}

}  // namespace

std::vector<KernelRow> kernel_rows(const KernelBench& options) {
  std::vector<KernelRow> rows;
  for (auto& [c, row] : wanted_rows(options)) rows.push_back(std::move(row));
  return rows;
}

Expected<std::vector<KernelRow>> bench_kernels(const KernelBench& options,
                                               const KernelTurn& after_round) {
  if (options.rounds < 1 || options.threads < 1)
    return invalid_argument("a benchmark needs at least one round and one thread");
  TROUPE_TRY(DeviceName name, DeviceName::parse("/job:bench/task:0/cpu:0"));
  auto device = make_cpu_device(name, {.threads = options.threads});
  std::vector<KernelRow> rows;
  for (auto& [c, row] : wanted_rows(options)) {
    TROUPE_TRY(measure(c, options, *device, after_round, row));
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace troupe
