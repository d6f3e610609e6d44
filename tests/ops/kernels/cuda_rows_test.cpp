// The rows of every op's table on the emulated GPU, where the op has a CUDA kernel, and the rules
// that update variables, against the CPU. Sums are added up in another order, so floats may differ
// in their last bits. Not run on hardware yet
// (TROUPE_TEST_GPU=1).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "ops/evaluate.hpp"
#include "tests/ops/kernels/conformance.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

using Runs = KernelRegistry::Entry::Runs;

CudaDevice& gpu() {
  static auto device = test_gpu("order=7");
  return *device;
}

template <class T>
bool near(const Tensor& got, const Tensor& want, double tolerance) {
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double a = double(got.data<T>()[i]), b = double(want.data<T>()[i]);
    const bool equal = a == b || (std::isnan(a) && std::isnan(b)) ||
                       std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
    if (!equal) return false;
  }
  return true;
}
// The same bits, but for those of NaN.
bool same_numbers(const Tensor& got, const Tensor& want) {
  if (Tensor::same(got, want)) return true;
  if (got.dtype() != want.dtype() || got.shape() != want.shape() || !is_float(want.dtype()))
    return false;
  const auto equal = [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < want.elements(); ++i) {
      const T a = got.data<T>()[i], b = want.data<T>()[i];
      const bool nan = std::isnan(double(a)) && std::isnan(double(b));
      if (!nan && std::memcmp(&a, &b, sizeof a) != 0) return false;
    }
    return true;
  };
  switch (want.dtype()) {
    case DType::f32:
      return equal(float());
    case DType::f64:
      return equal(double());
    case DType::f16:
      return equal(half());
    default:
      return equal(bfloat16());
  }
}
bool is_close(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) return false;
  switch (want.dtype()) {
    case DType::f32:
      return near<float>(got, want, 2e-6);
    case DType::f64:
      return near<double>(got, want, 1e-13);
    case DType::f16:
      return near<half>(got, want, 1e-3);
    case DType::bf16:
      return near<bfloat16>(got, want, 8e-3);
    default:
      return Tensor::same(got, want);
  }
}

// As conformance_test.cpp builds it, with nothing known of the inputs.
Expected<NodeDef> node_of(const OpCase& row) {
  GraphBuilder g(ops::builtin().ops);
  std::vector<Output> inputs;
  for (const Tensor& value : row.inputs)
    inputs.push_back(g.add("Placeholder", {}, {{"T", value.dtype()}, {"shape", PartialShape()}}));
  TROUPE_TRY(
      const Op op,
      g.try_add({.op = row.op, .inputs = inputs, .attrs = row.attrs, .name = node_name(row)}));
  return g.node(op.node());
}

// Ops whose sums go another way than the CPU's, or that take functions of the library. All others
// have the CPU's bits.
bool is_near_only(const std::string& op) {
  static const std::set<std::string> others = {
      "BatchMatMul", "BiasAddGrad", "_Conv2DBias", "_MatMulBias", "Conv2D", "Conv2DBackpropFilter",
      "Conv2DBackpropInput", "DotProductAttention", "DotProductAttentionGrad",
      "MaskedDotProductAttention", "MaskedDotProductAttentionGrad", "FusedBatchNorm",
      "FusedBatchNormGrad", "GroupNorm", "GroupNormGrad", "LayerNorm", "LayerNormGrad",
      "LogSoftmax", "LogSoftmaxGrad", "LstmCell", "LstmCellGrad", "LstmSequence",
      "LstmSequenceGrad", "ApplyLamb", "TileGrad", "MatMul", "Mean", "Prod", "Softmax",
      "SoftmaxGrad", "SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "Sum",
      "SumToShape", "SumToShapeOf",
      // of the library
      "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atan2", "Atanh", "Cos", "Cosh", "Elu", "Erf",
      "ErfGrad", "Gelu", "GeluGrad", "GeluTanh", "GeluTanhGrad", "Exp", "Expm1", "Log", "Log1p",
      "Pow", "PowGradBase", "PowGradExponent", "Selu", "SeluGrad", "Sigmoid", "Sin", "Sinh",
      "Softplus", "SoftplusGrad", "Tan", "Tanh"};
  return others.count(op) != 0;
}

void check_same(const NodeDef& node, const std::vector<Tensor>& inputs, bool in_place) {
  const auto want = evaluate(ops::builtin(), node, inputs, inline_device());
  REQUIRE_MESSAGE(want.ok(), want.status().text());
  const auto got = run_on_gpu(ops::builtin(), gpu(), node, inputs, in_place);
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  for (std::size_t i = 0; i < want->size(); ++i) {
    const bool same = is_near_only(node.op) ? is_close((*got)[i], (*want)[i])
                                            : same_numbers((*got)[i], (*want)[i]);
    CHECK_MESSAGE(
        same, "output " << i << ": " << (*got)[i].text() << " instead of " << (*want)[i].text());
  }
}

// Sums may cancel: what counts is how far apart results are in units of the largest of them.
void check_near_largest(const NodeDef& node, const std::vector<Tensor>& inputs, bool in_place) {
  const auto want = evaluate(ops::builtin(), node, inputs, inline_device());
  REQUIRE_MESSAGE(want.ok(), want.status().text());
  const auto got = run_on_gpu(ops::builtin(), gpu(), node, inputs, in_place);
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  for (std::size_t k = 0; k < want->size(); ++k) {
    const std::span<const float> a = (*got)[k].span<float>(), b = (*want)[k].span<float>();
    REQUIRE(a.size() == b.size());
    float largest = 0;
    for (const float x : b)
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    for (std::size_t i = 0; i < b.size(); ++i)
      if (a[i] != b[i] && !(std::abs(a[i] - b[i]) <= 2e-6f * largest))
        FAIL("output ", k, ", element ", i, ": ", a[i], " instead of ", b[i]);
  }
}

// A row that many lanes share has nothing that a GPU sees otherwise.
bool is_large(const OpCase& row) {
  for (const Tensor& t : row.inputs)
    if (t.elements() > 20'000) return true;
  return false;
}

bool on_gpu(const NodeDef& node) {
  return ops::builtin().kernels.make(node, *ops::builtin().ops.find(node.op), "CUDA").ok();
}

}  // namespace

// What a GPU of this machine can run, too.
TEST_SUITE_BEGIN("gpu");

TEST_CASE("CUDA: rows of ops have the CPU's results") {
  if (skips_without_gpu()) return;
  std::set<std::string> ops;
  for (auto* rows : AddCases::all())
    for (const OpCase& row : rows()) {
      if (!ops::builtin().kernels.find(row.op, "CUDA") || is_large(row)) continue;
      const auto node = node_of(row);
      if (!node.ok() || !row.error.empty()) continue;
      if (!on_gpu(*node)) continue;  // of another type
      INFO(row.op << " of " << (row.inputs.empty() ? "" : row.inputs[0].text()));
      ops.insert(row.op);
      check_same(*node, row.inputs, false);
    }
  CHECK(ops.size() > 110);
}

TEST_CASE("CUDA: what the CPU refuses is refused") {
  if (skips_without_gpu()) return;
  std::size_t refused = 0;
  for (auto* rows : AddCases::all())
    for (const OpCase& row : rows()) {
      if (row.error.empty() || !ops::builtin().kernels.find(row.op, "CUDA")) continue;
      const auto node = node_of(row);
      if (!node.ok() || !on_gpu(*node)) continue;
      INFO(row.op << ": " << row.error);
      if (evaluate(ops::builtin(), *node, row.inputs, inline_device()).ok())
        continue;  // when it is built
      CHECK_FALSE(run_on_gpu(ops::builtin(), gpu(), *node, row.inputs).ok());
      ++refused;
    }
  CHECK(refused > 10);
}

// Sizes at the borders of warps, blocks and tiles.
TEST_CASE("CUDA: reductions over rows, columns and anything else") {
  if (skips_without_gpu()) return;
  Random random(5);
  INFO("seed 5");
  const auto check = [&](const char* op, DType dtype, const Shape& shape,
                         std::vector<std::int64_t> axes) {
    Tensor x = Tensor::make(dtype, shape).value();
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      // Whose sums are exact in any order.
      if (dtype == DType::f32) x.mutable_data<float>()[i] = float(random.below(128)) / 64 - 1;
      if (dtype == DType::i32) x.mutable_data<std::int32_t>()[i] = std::int32_t(random());
      if (dtype == DType::bf16) x.mutable_data<bfloat16>()[i] = bfloat16(float(random.below(3)));
    }
    INFO(op << " of " << dtype_name(dtype) << shape.text());
    const NodeDef node = make_node(op, {x}, {{"axes", axes}, {"keep_dims", false}});
    check_same(node, {x}, false);
    // The same bits again, in another order of threads.
    static auto other = test_gpu("order=11");
    const auto once = run_on_gpu(ops::builtin(), gpu(), node, {x});
    const auto again = run_on_gpu(ops::builtin(), *other, node, {x});
    REQUIRE(once.ok());
    REQUIRE(again.ok());
    CHECK(Tensor::same((*once)[0], (*again)[0]));
  };
  for (const char* op : {"Sum", "Max"})
    for (const DType dtype : {DType::f32, DType::i32, DType::bf16})
      for (const std::int64_t n : {0, 1, 31, 32, 33, 257}) {
        check(op, dtype, Shape{3, n}, {1});
        check(op, dtype, Shape{n, 5}, {0});
        check(op, dtype, Shape{2, 7, n}, {1});
        check(op, dtype, Shape{2, n, 3, 2}, {0, 2});
        check(op, dtype, Shape{n}, {});
      }
  // In parts, of which the last is shorter, and dimension after dimension.
  for (const char* op : {"Sum", "Max", "Mean"})
    for (const DType dtype : {DType::f32, DType::bf16}) {
      check(op, dtype, Shape{2, 9001}, {1});
      check(op, dtype, Shape{1301, 33}, {0});
      check(op, dtype, Shape{2, 1030, 3}, {1});
      check(op, dtype, Shape{2, 1030, 2, 5}, {1, 3});
      check(op, dtype, Shape{3, 2, 3, 5, 7}, {0, 2, 4});
    }
}

TEST_CASE("CUDA: the first extreme of rows and columns of any length, and the first NaN") {
  if (skips_without_gpu()) return;
  Random random(8);
  INFO("seed 8");
  for (const char* op : {"ArgMax", "ArgMin"})
    for (const DType dtype : {DType::f32, DType::bf16, DType::i32})
      for (const std::int64_t n : {1, 31, 32, 33, 64, 255, 256, 257, 1000})
        for (const bool has_nan : {false, true}) {
          Tensor x = Tensor::make(dtype, Shape{5, n}).value();
          for (std::int64_t i = 0; i < x.elements(); ++i) {
            // Of few values, so that many are equal; -0 is one of them.
            const float value = -float(random.below(7)) * (random.below(2) == 0 ? 1 : -1);
            const bool none = has_nan && random.below(std::uint64_t(2 * n)) == 0;
            if (dtype == DType::f32) x.mutable_data<float>()[i] = none ? NAN : value;
            if (dtype == DType::bf16) x.mutable_data<bfloat16>()[i] = bfloat16(none ? NAN : value);
            if (dtype == DType::i32) x.mutable_data<std::int32_t>()[i] = std::int32_t(value);
          }
          for (const std::int64_t axis : {0, 1}) {
            INFO(op << " of " << dtype_name(dtype) << " and " << n << " along " << axis);
            check_same(make_node(op, {x}, {{"axis", axis}}), {x}, false);
          }
        }
}

TEST_CASE("CUDA: products of matrices at the borders of tiles") {
  if (skips_without_gpu()) return;
  Random random(6);
  INFO("seed 6");
  for (const std::int64_t m : {0, 1, 17})
    for (const std::int64_t n : {1, 16, 33})
      for (const std::int64_t k : {0, 1, 15, 40})
        for (const bool ta : {false, true})
          for (const bool tb : {false, true}) {
            Tensor a = Tensor::make(DType::f32, ta ? Shape{k, m} : Shape{m, k}).value();
            Tensor b = Tensor::make(DType::f32, tb ? Shape{n, k} : Shape{k, n}).value();
            for (Tensor* t : {&a, &b})
              for (std::int64_t i = 0; i < t->elements(); ++i)
                t->mutable_data<float>()[i] = float(random.uniform(-1, 1));
            INFO(m << " x " << n << " x " << k << (ta ? " a^T" : "") << (tb ? " b^T" : ""));
            check_same(make_node("MatMul", {a, b}, {{"transpose_a", ta}, {"transpose_b", tb}}),
                       {a, b}, false);
          }
}

TEST_CASE("CUDA: products of many matrices, whose leading dimensions broadcast") {
  if (skips_without_gpu()) return;
  Random random(12);
  INFO("seed 12");
  const auto numbers = [&](const Shape& shape) {
    Tensor t = Tensor::make(DType::f32, shape).value();
    for (std::int64_t i = 0; i < t.elements(); ++i)
      t.mutable_data<float>()[i] = float(random.uniform(-1, 1));
    return t;
  };
  for (const bool ta : {false, true})
    for (const bool tb : {false, true})
      for (const auto& [a, b] :
           {std::pair{Shape{3, 2}, Shape{3, 2}}, std::pair{Shape{3, 1}, Shape{2}},
            std::pair{Shape{}, Shape{5}}, std::pair{Shape{0}, Shape{1}}}) {
        const auto with = [](Shape shape, std::int64_t rows, std::int64_t columns) {
          shape.append(rows), shape.append(columns);
          return shape;
        };
        const Tensor x = numbers(ta ? with(a, 20, 70) : with(a, 70, 20));
        const Tensor y = numbers(tb ? with(b, 33, 20) : with(b, 20, 33));
        INFO(x.shape().text() << " " << y.shape().text());
        check_same(make_node("BatchMatMul", {x, y}, {{"transpose_a", ta}, {"transpose_b", tb}}),
                   {x, y}, false);
      }
}

// Strides, dilations, groups, paddings that leave places of the filter outside.
TEST_CASE("CUDA: convolutions and their gradients") {
  if (skips_without_gpu()) return;
  Random random(13);
  INFO("seed 13");
  const auto numbers = [&](const Shape& shape) {
    Tensor t = Tensor::make(DType::f32, shape).value();
    for (std::int64_t i = 0; i < t.elements(); ++i)
      t.mutable_data<float>()[i] = float(random.uniform(-1, 1));
    return t;
  };
  using Ints = std::vector<std::int64_t>;
  struct Case {
    Shape x, filter;
    Ints strides, dilations;
    const char* padding;
    std::int64_t groups;
  };
  for (const Case& c : {Case{{2, 9, 7, 3}, {3, 3, 3, 8}, {1, 1}, {1, 1}, "SAME", 1},
                        Case{{2, 9, 8, 4}, {3, 2, 2, 6}, {2, 3}, {1, 1}, "SAME", 2},
                        Case{{1, 12, 11, 5}, {2, 3, 1, 5}, {1, 1}, {2, 3}, "VALID", 5},
                        Case{{3, 5, 5, 70}, {1, 1, 70, 66}, {2, 2}, {1, 1}, "VALID", 1},
                        // a sum over many pixels, in parts
                        Case{{3, 29, 31, 2}, {3, 3, 1, 4}, {1, 1}, {1, 1}, "SAME", 2},
                        Case{{1, 6, 6, 2}, {3, 3, 2, 3}, {2, 1}, {1, 2}, "EXPLICIT", 1}}) {
    AttrMap attrs{{"strides", c.strides}, {"dilations", c.dilations}, {"groups", c.groups}};
    attrs.emplace("padding", std::string(c.padding));
    if (c.padding == std::string("EXPLICIT")) attrs.emplace("explicit_paddings", Ints{2, 3, 0, 4});
    INFO(c.x.text() << " with " << c.filter.text() << " " << c.padding);
    const Tensor x = numbers(c.x), filter = numbers(c.filter);
    const NodeDef forward = make_node("Conv2D", {x, filter}, attrs);
    check_near_largest(forward, {x, filter}, false);
    const Shape y = (*evaluate(ops::builtin(), forward, {x, filter}, inline_device()))[0].shape();
    const Tensor dy = numbers(y);
    const auto sizes = [](const Shape& shape) {
      Tensor t = Tensor::make(DType::i64, Shape{4}).value();
      std::copy_n(shape.dims().begin(), 4, t.mutable_data<std::int64_t>());
      return t;
    };
    const std::vector<Tensor> to_x{sizes(c.x), filter, dy}, to_filter{x, sizes(c.filter), dy};
    check_near_largest(make_node("Conv2DBackpropInput", to_x, attrs), to_x, false);
    check_near_largest(make_node("Conv2DBackpropFilter", to_filter, attrs), to_filter, false);
  }
}

// More units than a block has threads, steps that follow each other, and none.
TEST_CASE("CUDA: LSTMs and their gradients") {
  if (skips_without_gpu()) return;
  Random random(14);
  INFO("seed 14");
  const auto numbers = [&](const Shape& shape) {
    Tensor t = Tensor::make(DType::f32, shape).value();
    for (std::int64_t i = 0; i < t.elements(); ++i)
      t.mutable_data<float>()[i] = float(random.uniform(-1, 1));
    return t;
  };
  for (const std::int64_t steps : {0, 1, 3})
    for (const auto& [batch, hidden] : {std::pair{1, 1}, std::pair{3, 70}, std::pair{17, 64}}) {
      const std::string sizes = Shape{batch, hidden}.text();
      INFO(steps << " steps of " << sizes);
      const Shape state{batch, hidden}, states{steps, batch, hidden};
      const Tensor h0 = numbers(state), c0 = numbers(state), dh = numbers(states);
      const Tensor x = numbers({steps, batch, 4 * hidden}), r = numbers({hidden, 4 * hidden});
      const AttrMap attrs{{"steps", std::int64_t{-1}}};
      const std::vector<Tensor> in{x, h0, c0, r};
      const NodeDef forward = make_node("LstmSequence", in, attrs);
      check_near_largest(forward, in, false);
      check_near_largest(forward, in, true);
      const auto y = *evaluate(ops::builtin(), forward, in, inline_device());
      const std::vector<Tensor> back{dh, numbers(states), y[2], y[0], y[1], h0, c0, r};
      check_near_largest(make_node("LstmSequenceGrad", back, attrs), back, false);
      check_near_largest(make_node("LstmSequenceGrad", back, attrs), back, true);
    }
}

// Sums and products that no order changes: long lines are added up block by block.
TEST_CASE("CUDA: running sums and products") {
  if (skips_without_gpu()) return;
  Random random(15);
  INFO("seed 15");
  for (const Shape& shape : {Shape{3, 2, 5}, Shape{2, 3000}, Shape{2500, 3}, Shape{1, 1025, 1}})
    for (const DType dtype : {DType::f32, DType::bf16, DType::i32})
      for (const char* op : {"Cumsum", "Cumprod"})
        for (const bool exclusive : {false, true})
          for (const bool reverse : {false, true}) {
            Tensor x = Tensor::make(dtype, shape).value();
            for (std::int64_t i = 0; i < x.elements(); ++i) {
              const int sign = random.below(2) == 0 ? 1 : -1;
              const int value = op == std::string("Cumsum") ? int(random.below(8)) : sign;
              if (dtype == DType::f32) x.mutable_data<float>()[i] = float(value);
              if (dtype == DType::bf16) x.mutable_data<bfloat16>()[i] = bfloat16(float(value));
              if (dtype == DType::i32) x.mutable_data<std::int32_t>()[i] = std::int32_t(random());
            }
            INFO(op << " of " << dtype_name(dtype) << shape.text());
            const std::int64_t axis = shape[0] > shape[1] ? 0 : 1;
            const AttrMap attrs{{"axis", axis}, {"exclusive", exclusive}, {"reverse", reverse}};
            check_same(make_node(op, {x}, attrs), {x}, false);
            check_same(make_node(op, {x}, attrs), {x}, true);
          }
}

// More repeated dimensions than a tensor has room for, each as two.
TEST_CASE("CUDA: tensors repeated along many dimensions") {
  if (skips_without_gpu()) return;
  const Shape shape{2, 1, 3, 2, 2, 1};
  const AttrMap attrs{{"multiples", std::vector<std::int64_t>{2, 3, 1, 2, 2, 2}}};
  Tensor x = Tensor::make(DType::f32, shape).value();
  for (std::int64_t i = 0; i < x.elements(); ++i) x.mutable_data<float>()[i] = float(i);
  const NodeDef tile = make_node("Tile", {x}, attrs);
  check_same(tile, {x}, false);
  const Tensor dy = (*evaluate(ops::builtin(), tile, {x}, inline_device()))[0];
  const Tensor sizes = Tensor::of<std::int64_t>({6}, {2, 1, 3, 2, 2, 1});
  check_same(make_node("TileGrad", {dy, sizes}, attrs), {dy, sizes}, false);
}

// Whole gradients, and rows of few places, some of them the same.
TEST_CASE("CUDA: rules update variables as the CPU does") {
  if (skips_without_gpu()) return;
  Random random(8);
  INFO("seed 8");
  std::size_t itself = 0;
  for (const OpInfo* op : ops::builtin().ops.all()) {
    const auto* kernel = ops::builtin().kernels.find(op->def.name, "CUDA");
    const std::string& name = op->def.name;
    const bool rule =
        name.starts_with("Apply") || name.starts_with("Assign") || name.starts_with("Scatter");
    if (!kernel || !op->is(External::Order::write) || !rule || name.ends_with("When")) continue;
    for (const DType dtype : {DType::f32, DType::f64})
      for (const bool nesterov : {false, true}) {
        if (nesterov && !op->attr("nesterov")) continue;
        if (std::find(kernel->types.begin(), kernel->types.end(), dtype) == kernel->types.end())
          continue;
        NodeDef node{.name = "n", .op = op->def.name, .attrs = {{"T", Attr(dtype)}}};
        for (const AttrSpec& spec : op->attrs)
          if (spec.fallback) node.attrs.emplace(spec.name, *spec.fallback);
        if (op->attr("nesterov")) node.attrs["nesterov"] = Attr(nesterov);
        std::vector<Tensor> inputs;
        for (const ArgSpec& arg : op->in) {
          const bool handle = arg.dtype == DType::resource, step = arg.name == "step";
          const bool whole = (handle && !step) || arg.name == "grad" || arg.name == "value";
          const bool indices = arg.name == "indices", rows = arg.name == "rows";
          const DType type = step || indices ? DType::i64 : dtype;
          if (handle) node.out_types.push_back(type);
          const Shape shape = whole     ? Shape{7, 401}
                              : indices ? Shape{5}
                              : rows    ? Shape{5, 401}
                                        : Shape{};
          Tensor t = Tensor::make(type, shape).value();
          for (std::int64_t i = 0; i < t.elements(); ++i) {
            const double value = random.uniform(0.1, 0.9);
            if (type == DType::f32) t.mutable_data<float>()[i] = float(value);
            if (type == DType::f64) t.mutable_data<double>()[i] = value;
            if (step) t.mutable_data<std::int64_t>()[i] = 4;
            if (indices) t.mutable_data<std::int64_t>()[i] = std::int64_t(random.below(3)) * 3;
          }
          inputs.push_back(std::move(t));
        }
        node.inputs.resize(inputs.size());
        INFO(op->def.name << " of " << dtype_name(dtype));
        CHECK(kernel->runs == Runs::itself);
        ++itself;
        check_same(node, inputs, false);
        check_same(node, inputs, true);
      }
  }
  CHECK(itself >= 60);
}

// More tensors than one launch takes; of bf16 the sum is kept in f32 all the way.
TEST_CASE("CUDA: sums of many tensors") {
  if (skips_without_gpu()) return;
  Random random(9);
  INFO("seed 9");
  for (const DType dtype : {DType::f32, DType::bf16, DType::i64})
    for (const int n : {1, 2, 32, 33, 100}) {
      std::vector<Tensor> inputs;
      for (int k = 0; k < n; ++k) {
        Tensor t = Tensor::make(dtype, Shape{7, 41}).value();
        for (std::int64_t i = 0; i < t.elements(); ++i) {
          if (dtype == DType::f32) t.mutable_data<float>()[i] = float(random.uniform(-1, 1));
          if (dtype == DType::bf16)
            t.mutable_data<bfloat16>()[i] = bfloat16(float(random.below(9)));
          if (dtype == DType::i64) t.mutable_data<std::int64_t>()[i] = std::int64_t(random());
        }
        inputs.push_back(std::move(t));
      }
      NodeDef node{.name = "n", .op = "AddN", .attrs = {{"T", dtype}, {"N", std::int64_t(n)}}};
      node.inputs.resize(inputs.size());
      node.out_types = {dtype};
      INFO(n << " of " << dtype_name(dtype));
      check_same(node, inputs, false);
      check_same(node, inputs, true);
    }
}

// Rows of one place far apart, and places without any.
TEST_CASE("CUDA: rows are added up in their order, the same bits in every order of threads") {
  if (skips_without_gpu()) return;
  Random random(10);
  INFO("seed 10");
  static auto other = test_gpu("order=13");
  for (const std::int64_t inner : {1, 3, 257}) {
    const std::int64_t n = 300, size = 40;
    Tensor rows = Tensor::make(DType::f32, Shape{n, inner}).value();
    for (std::int64_t i = 0; i < rows.elements(); ++i)
      rows.mutable_data<float>()[i] = float(random.uniform(-1, 1));
    Tensor ids = Tensor::make(DType::i32, Shape{n}).value();
    for (std::int64_t i = 0; i < n; ++i)
      ids.mutable_data<std::int32_t>()[i] = std::int32_t(random.below(std::uint64_t(size) / 2) * 2);
    const Tensor count = Tensor::scalar(size);
    const Tensor shape = Tensor::of<std::int64_t>({2}, {size, inner});
    for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentMean", "UnsortedSegmentMax",
                           "UnsortedSegmentMin", "UnsortedSegmentProd", "GatherGrad"}) {
      INFO(op << " of rows of " << inner);
      const std::vector<Tensor> inputs{rows, ids, op == std::string("GatherGrad") ? shape : count};
      const NodeDef node = make_node(op, inputs, {});
      check_same(node, inputs, false);
      const auto again = run_on_gpu(ops::builtin(), *other, node, inputs);
      REQUIRE(again.ok());
      CHECK(Tensor::same((*again)[0], (*run_on_gpu(ops::builtin(), gpu(), node, inputs))[0]));
    }
  }
}

// Widths and heights at the borders of warps and blocks, and squares that overflow.
Tensor uniform_numbers(Random& random, const Shape& shape, double low, double high) {
  Tensor t = Tensor::make(DType::f32, shape).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    t.mutable_data<float>()[i] = float(random.uniform(low, high));
  return t;
}

void check_batch_norm(const Tensor& dy, const Tensor& x, const Tensor& row, bool training) {
  const AttrMap attrs{{"is_training", training}};
  const Tensor zeros = Tensor::zeros(DType::f32, row.shape()).value();
  const std::vector<Tensor> in{x, row, row, row, row};
  check_near_largest(make_node("FusedBatchNorm", in, attrs), in, false);
  const std::vector<Tensor> back{dy, x, row, row, row, zeros, row, row};
  check_near_largest(make_node("FusedBatchNormGrad", back, attrs), back, true);
}

TEST_CASE("CUDA: norms and their gradients") {
  if (skips_without_gpu()) return;
  Random random(11);
  INFO("seed 11");
  const auto numbers = [&](const Shape& shape, double low, double high) {
    return uniform_numbers(random, shape, low, high);
  };
  for (const std::int64_t rows : {1, 5, 40})
    for (const std::int64_t n : {1, 33, 300})
      for (const double most : {1.0, 3e30}) {
        if (rows == 40 && n == 300) continue;
        INFO(rows << " rows of " << n << " up to " << most);
        const Tensor x = numbers({rows, n}, -most, most), dy = numbers({rows, n}, -1, 1);
        const Tensor row = numbers({n}, 0.5, 2);
        check_near_largest(make_node("LayerNorm", {x, row, row}, {}), {x, row, row}, false);
        check_near_largest(make_node("LayerNormGrad", {dy, x, row}, {}), {dy, x, row}, true);
        for (const bool training : {false, true}) check_batch_norm(dy, x, row, training);
      }
}

TEST_CASE("CUDA: norms of groups and their gradients") {
  if (skips_without_gpu()) return;
  Random random(17);
  INFO("seed 17");
  const auto numbers = [&](const Shape& shape, double low, double high) {
    return uniform_numbers(random, shape, low, high);
  };
  struct Case {
    std::int64_t images, positions, channels, groups;
  };
  // The sums of the last are in two parts, which begin within an image.
  for (const Case& k : {Case{1, 1, 8, 2}, Case{3, 7, 6, 6}, Case{2, 35, 33, 3}, Case{2, 300, 12, 1},
                        Case{5, 1, 70, 10}, Case{3, 350, 4, 2}})
    for (const double most : {1.0, 3e30}) {
      INFO(k.images << " of " << k.positions << " positions and " << k.channels << " channels in "
                    << k.groups << " groups, up to " << most);
      const Shape shape{k.images, k.positions, k.channels};
      const Tensor x = numbers(shape, -most, most), dy = numbers(shape, -1, 1);
      const Tensor row = numbers({k.channels}, 0.5, 2);
      const AttrMap attrs{{"groups", k.groups}};
      check_near_largest(make_node("GroupNorm", {x, row, row}, attrs), {x, row, row}, false);
      check_near_largest(make_node("GroupNormGrad", {dy, x, row}, attrs), {dy, x, row}, true);
    }
}

// In two parts, one of which is shorter.
TEST_CASE("CUDA: norms over many rows and their gradients") {
  if (skips_without_gpu()) return;
  Random random(13);
  INFO("seed 13");
  const Shape shape{1025, 33};
  const Tensor dy = uniform_numbers(random, shape, -1, 1);
  const Tensor row = uniform_numbers(random, {33}, 0.5, 2);
  for (const double most : {1.0, 3e30}) {
    INFO("up to " << most);
    const Tensor x = uniform_numbers(random, shape, -most, most);
    check_batch_norm(dy, x, row, true);
    if (most == 1)
      check_near_largest(make_node("LayerNormGrad", {dy, x, row}, {}), {dy, x, row}, true);
  }
}

// Values near 0 in one part, and near `most` in another.
TEST_CASE("CUDA: the statistics of channels whose parts differ are those of all rows") {
  if (skips_without_gpu()) return;
  for (const float most : {1.0f, 3e12f, 3e18f, 3e25f, 3e37f}) {
    INFO("up to " << most);
    Tensor x = Tensor::make(DType::f32, Shape{1536, 2}).value();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      x.mutable_data<float>()[i] = (i < 1024 ? 0.001f : most) * float(i % 5);
    const Tensor row = Tensor::of(Shape{2}, {1.0f, 2.0f});
    const std::vector<Tensor> in{x, row, row, row, row};
    check_near_largest(make_node("FusedBatchNorm", in, {{"is_training", true}}), in, false);
  }
}

TEST_SUITE_END();

// A block goes through its part of a sum step by step, and waits for the memory in each: a few
// blocks with all of it would take a GPU hundreds of times as long.
TEST_CASE("CUDA: long sums of few outputs are added up by many blocks") {
  if (is_on_hardware()) return;
  const auto blocks = [](const NodeDef& node, const std::vector<Tensor>& inputs) {
    count_in_fake_cuda("most_blocks");
    REQUIRE(run_on_gpu(ops::builtin(), gpu(), node, inputs).ok());
    return count_in_fake_cuda("most_blocks");
  };
  const Tensor x = Tensor::zeros(DType::f32, {20'480, 1}).value();
  const Tensor row = Tensor::zeros(DType::f32, {1}).value();
  const AttrMap training{{"is_training", true}};
  CHECK(blocks(make_node("Sum", {x}, {{"axes", std::vector<std::int64_t>{}}}), {x}) == 5);
  const Tensor pairs = Tensor::zeros(DType::f32, {20'480, 2}).value();
  CHECK(blocks(make_node("BiasAddGrad", {pairs}, {}), {pairs}) == 40);
  // What has a thread for each element has 20 blocks.
  const std::vector<Tensor> norm{x, row, row, row, row};
  CHECK(blocks(make_node("FusedBatchNorm", norm, training), norm) == 40);
  const std::vector<Tensor> back{x, x, row, row, row, row, row, row};
  CHECK(blocks(make_node("FusedBatchNormGrad", back, training), back) == 40);
}

// What a thread of Adam's rule begins with takes some GPUs as long as dozens of its elements.
TEST_CASE("CUDA: a rule has no more threads than keep a GPU busy, however large the variable") {
  if (is_on_hardware()) return;
  const FakeCuda fake("");
  CudaOptions options;
  options.search = emulated_search();
  options.memory = std::size_t{128} << 20;
  const DeviceName name = DeviceName::parse("/job:worker/task:0/cuda:0").value();
  auto device = make_cuda_device(name, options).value();
  NodeDef node{.name = "n", .op = "ApplyAdam", .attrs = {{"T", Attr(DType::f32)}}};
  node.out_types = {DType::f32, DType::f32, DType::f32, DType::i64};
  // Four for each thread would be 2,051 blocks.
  const Tensor all = Tensor::zeros(DType::f32, {2'100'000}).value();
  const Tensor half = Tensor::of(Shape{}, {0.5f}), step = Tensor::zeros(DType::i64, {}).value();
  const std::vector<Tensor> inputs{all, all, all, step, half, half, half, half, all};
  count_in_fake_cuda("most_blocks");
  const auto results = run_on_gpu(ops::builtin(), *device, node, inputs, true);
  REQUIRE_MESSAGE(results.ok(), results.status().text());
  CHECK(count_in_fake_cuda("most_blocks") == 2048);
}

}  // namespace troupe::test
