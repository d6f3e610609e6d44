// Random tensors on the emulated GPU: the CPU's numbers, from the same counters. Not run on
// hardware.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "ops/evaluate.hpp"
#include "tests/ops/kernels/cuda_kernels.hpp"
#include "tests/ops/nn/nn_kernels.hpp"
#include "tests/ops/with_type.hpp"

namespace troupe::test {
namespace {

// Of logarithms and angles of the library; else none.
double drawn_tolerance(const std::string& op, DType dtype) {
  const bool by_library =
      op == "TruncatedNormal" || (op.find("Normal") != std::string::npos && dtype == DType::f64);
  if (!by_library) return 0;
  return dtype == DType::f64   ? 1e-14
         : dtype == DType::f32 ? 1e-6
         : dtype == DType::f16 ? 1e-3
                               : 8e-3;
}

void check_drawn(const std::string& op, DType dtype, const Shape& shape, AttrMap attrs) {
  static auto gpu = test_gpu("order=5");
  INFO(op << " of " << dtype_name(dtype) << shape.text());
  std::vector<Tensor> inputs;
  attrs.emplace("T", dtype);
  if (op.ends_with("Like"))
    inputs.push_back(Tensor::zeros(dtype, shape).value());
  else
    attrs.emplace("shape", PartialShape(shape));
  const NodeDef node = make_node(op, inputs, attrs);
  const RandomState random{0x9E3779B97F4A7C15u, 0x0123456789ABCDEFu};
  const auto want = evaluate(ops::builtin(), node, inputs, inline_device(), {.random = random});
  REQUIRE_MESSAGE(want.ok(), want.status().text());
  const auto got = run_on_gpu(ops::builtin(), *gpu, node, inputs, false, random);
  REQUIRE_MESSAGE(got.ok(), got.status().text());
  const Tensor &a = (*got)[0], &b = (*want)[0];
  REQUIRE(a.shape() == b.shape());
  REQUIRE(a.dtype() == b.dtype());
  const double most = drawn_tolerance(op, dtype);
  if (most == 0) {
    CHECK(Tensor::same(a, b));
    return;
  }
  with_type(dtype, [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < b.elements(); ++i) {
      const double x = double(a.data<T>()[i]), y = double(b.data<T>()[i]);
      if (std::abs(x - y) > most * std::max(1.0, std::abs(y))) FAIL("element ", i, ": ", x, " ", y);
    }
  });
}

}  // namespace

// What a GPU of this machine can run, too.
TEST_SUITE_BEGIN("gpu");

TEST_CASE("CUDA: random tensors have the CPU's numbers") {
  if (skips_without_gpu()) return;
  std::set<std::string> drawn;
  for (const OpInfo* op : ops::builtin().ops.all()) {
    const auto* kernel = ops::builtin().kernels.find(op->def.name, "CUDA");
    if (!kernel || !op->def.random) continue;
    drawn.insert(op->def.name);
    for (const DType dtype : kernel->types)
      for (const Shape& shape : {Shape{}, Shape{0, 3}, Shape{13, 79}, Shape{4096}}) {
        if (!op->attr("high") && !op->attr("mean")) FAIL("no row for ", op->def.name);
        if (op->def.name == "RandomUniformInt") {
          check_drawn(op->def.name, dtype, shape,
                      {{"low", std::int64_t{-7}}, {"high", std::int64_t{1001}}});
        } else if (op->attr("high")) {
          check_drawn(op->def.name, dtype, shape, {});
          check_drawn(op->def.name, dtype, shape, {{"low", -3.0}, {"high", 5.5}});
        } else {
          check_drawn(op->def.name, dtype, shape, {{"mean", 0.5}, {"stddev", 2.0}});
        }
      }
  }
  CHECK(drawn == std::set<std::string>{"RandomStandardNormal", "RandomStandardNormalLike",
                                       "RandomUniform", "RandomUniformInt", "RandomUniformLike",
                                       "TruncatedNormal"});
}

TEST_SUITE_END();

}  // namespace troupe::test
