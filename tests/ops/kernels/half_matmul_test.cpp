// Products of f16 and bf16: summed in f32, rounded once.
#include <doctest/doctest.h>

#include <cmath>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor cast_to(const Tensor& x, DType to) { return run("Cast", {x}, {{"to", to}})[0]; }

// Whether `product` is that of `a` and `b`, summed in f32 in any order and rounded once.
bool rounded_once(const std::string& op, const Tensor& product, const Tensor& a, const Tensor& b,
                  const AttrMap& attrs) {
  const auto exact = [&](bool sizes) {
    const auto wide = [&](const Tensor& x) {
      const Tensor y = cast_to(x, DType::f64);
      return sizes ? run("Abs", {y})[0] : y;
    };
    return run(op, {wide(a), wide(b)}, attrs)[0];
  };
  const Tensor sums = exact(false), sizes = exact(true), got = cast_to(product, DType::f64);
  const std::int64_t k = a.dim(a.rank() - 1) + a.dim(a.rank() - 2);  // at least
  const double half_ulp = a.dtype() == DType::f16 ? 0x1p-11 : 0x1p-8;
  for (std::int64_t i = 0; i < sums.elements(); ++i) {
    const double sum = sums.data<double>()[i], lost = 0x1p-24 * double(k) * sizes.data<double>()[i];
    if (!(std::abs(got.data<double>()[i] - sum) <=
          half_ulp * (std::abs(sum) + lost) + lost + 0x1p-25))
      return false;
  }
  return true;
}

}  // namespace

TEST_CASE("MatMul of 16-bit floats is summed in f32 and rounded once") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  const std::int64_t sizes[][3] = {{1, 1, 1}, {7, 1, 5}, {33, 65, 17}, {100, 300, 256}};
  for (DType type : {DType::f16, DType::bf16})
    for (const auto& [m, k, n] : sizes)
      for (int mode = 0; mode < 4; ++mode) {
        const bool ta = mode & 1, tb = mode & 2;
        const AttrMap attrs{{"transpose_a", ta}, {"transpose_b", tb}};
        const Tensor a = cast_to(random_f64(rng, ta ? Shape{k, m} : Shape{m, k}), type);
        const Tensor b = cast_to(random_f64(rng, tb ? Shape{n, k} : Shape{k, n}), type);
        const std::string size = Shape{m, k, n}.text();
        INFO(dtype_name(type) << " " << size << " mode " << mode);
        const Tensor product = run("MatMul", {a, b}, attrs)[0];
        CHECK(product.dtype() == type);
        CHECK(rounded_once("MatMul", product, a, b, attrs));
      }
}

TEST_CASE("BatchMatMul of 16-bit floats is summed in f32 and rounded once") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (DType type : {DType::f16, DType::bf16})
    for (int mode = 0; mode < 4; ++mode) {
      const bool ta = mode & 1, tb = mode & 2;
      const AttrMap attrs{{"transpose_a", ta}, {"transpose_b", tb}};
      const Tensor a = cast_to(random_f64(rng, ta ? Shape{5, 9, 4} : Shape{5, 4, 9}), type);
      const Tensor b = cast_to(random_f64(rng, tb ? Shape{5, 3, 9} : Shape{5, 9, 3}), type);
      CHECK(rounded_once("BatchMatMul", run("BatchMatMul", {a, b}, attrs)[0], a, b, attrs));
    }
}

// The sum of k products, one after another as type and level have it: `x(p)` and `y(p)` are 0 from
// k on.
template <class X, class Y>
float sum_of_products(DType type, int level, std::int64_t k, const X& x, const Y& y) {
  float sum = 0;
  if (type == DType::f16) {
    for (std::int64_t p = 0; p < k; ++p) sum = std::fma(x(p), y(p), sum);
    return sum;
  }
  if (level == 4) {  // pairs, the odd one first
    for (std::int64_t p = 0; p < k; p += 2)
      for (std::int64_t q : {p + 1, p}) sum = std::fma(x(q), y(q), sum);
    return sum;
  }
  for (std::int64_t p = 0; p < k; p += 32) {  // tiles
    float even = 0, odd = 0;
    for (std::int64_t q = p; q < p + 32; q += 2) {
      even = std::fma(x(q), y(q), even);
      odd = std::fma(x(q + 1), y(q + 1), odd);
    }
    const float both = even + odd;
    sum += both;
  }
  return sum;
}

// With and without AVX512_BF16 or AMX.
TEST_CASE_TEMPLATE("bits of 16-bit products on AVX-512 do not depend on the processor", T, half,
                   bfloat16) {
  const int level = ops::isa_level();
  if (level < 4) {
    MESSAGE("skipped: kernels of another level");
    return;
  }
  constexpr DType kType = dtype_of<T>;
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  const std::int64_t sizes[][3] = {{1, 1, 1},    {15, 7, 70},  {9, 1031, 40},  {70, 64, 600},
                                   {48, 96, 33}, {272, 32, 5}, {140, 1056, 17}};
  for (const auto& [m, k, n] : sizes)
    for (int mode = 0; mode < 4; ++mode) {
      const bool ta = mode & 1, tb = mode & 2;
      Tensor a = cast_to(random_f64(rng, ta ? Shape{k, m} : Shape{m, k}), kType);
      const Tensor b = cast_to(random_f64(rng, tb ? Shape{n, k} : Shape{k, n}), kType);
      a.mutable_data<T>()[0].bits = 3;  // subnormal: 0 in bf16
      const AttrMap attrs{{"transpose_a", ta}, {"transpose_b", tb}};
      const Tensor product = run("MatMul", {a, b}, attrs)[0];
      const Tensor batch = run("BatchMatMul", {a, b}, attrs)[0];
      const auto at = [k = k](const Tensor& x, bool along, std::int64_t i, std::int64_t p,
                              std::int64_t stride) {
        if (p >= k) return 0.0f;
        const float value = x.data<T>()[along ? i * k + p : p * stride + i];
        return std::abs(value) < 0x1p-126f ? 0.0f : value;
      };
      std::int64_t other = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          const float sum = sum_of_products(
              kType, level, k, [&, m = m](std::int64_t q) { return at(a, !ta, i, q, m); },
              [&, n = n](std::int64_t q) { return at(b, tb, j, q, n); });
          if (product.data<T>()[i * n + j].bits != T(sum).bits) ++other;
        }
      const std::string size = Shape{m, k, n}.text();
      INFO(size << " mode " << mode);
      CHECK(other == 0);
      CHECK(Tensor::same(product, batch));
    }
}

TEST_CASE_TEMPLATE("16-bit products on AVX-512 have one NaN", T, half, bfloat16) {
  if (ops::isa_level() < 4) {
    MESSAGE("skipped: kernels of another level");
    return;
  }
  const std::uint16_t inf = T(INFINITY).bits, one = T(1.0f).bits, nan = inf | 0x8003;
  for (const auto& [x, y] : {std::pair{inf, one}, {nan, one}, {one, nan}}) {
    Tensor a = cast_to(Tensor::of<float>(Shape{1, 2}, {1, 1}), dtype_of<T>);
    Tensor b = cast_to(Tensor::of<float>(Shape{2, 1}, {1, -1}), dtype_of<T>);
    for (int i = 0; i < 2; ++i) a.mutable_data<T>()[i].bits = x;
    b.mutable_data<T>()[0].bits = y;
    const Tensor product = run("MatMul", {a, b})[0];
    CHECK(product.data<T>()[0].bits == T(std::numeric_limits<float>::quiet_NaN()).bits);
  }
}

// 1 + 1 + ... stays at 2048 in f16 and at 256 in bf16.
TEST_CASE("a long sum of 16-bit products does not stop growing") {
  for (DType type : {DType::f16, DType::bf16}) {
    const Tensor ones = cast_to(Tensor::of<float>(Shape{4096}, std::vector<float>(4096, 1)), type);
    const Tensor product =
        run("MatMul", {ones.reshaped(Shape{1, 4096}), ones.reshaped(Shape{4096, 1})})[0];
    CHECK(cast_to(product, DType::f32).data<float>()[0] == 4096);
  }
  const Tensor large = cast_to(Tensor::of<float>(Shape{1, 1}, {300}), DType::f16);
  CHECK(std::isinf(cast_to(run("MatMul", {large, large})[0], DType::f32).data<float>()[0]));
}

TEST_CASE("gradients of a 16-bit MatMul have its type and values") {
  const auto check = []<class T>(T, const char* op, const Shape& of_a, const Shape& of_b) {
    Graph g;
    Output a = placeholder<T>(g, PartialShape(of_a), "a"),
           b = placeholder<T>(g, PartialShape(of_b), "b");
    Output product = g.add(op, {a, b});
    const Output ys[] = {product}, xs[] = {a, b};
    auto slopes = gradients(ys, xs);
    REQUIRE_MESSAGE(slopes.ok(), slopes.status().text());
    std::mt19937_64 rng(7);
    const Tensor x = cast_to(random_f64(rng, of_a), dtype_of<T>);
    const Tensor y = cast_to(random_f64(rng, of_b), dtype_of<T>);
    Interpreter interpreter(g);
    const auto made = interpreter.run({product, (*slopes)[0], (*slopes)[1]}, {},
                                      {{a.port().node, x}, {b.port().node, y}});
    const Tensor dy = run("OnesLike", {made[0]})[0];
    CHECK(Tensor::same(made[1], run(op, {dy, y}, {{"transpose_b", true}})[0]));
    CHECK(Tensor::same(made[2], run(op, {x, dy}, {{"transpose_a", true}})[0]));
  };
  check(half(), "MatMul", {4, 5}, {5, 3});
  check(bfloat16(), "MatMul", {4, 5}, {5, 3});
  check(half(), "BatchMatMul", {2, 4, 5}, {2, 5, 3});
  check(bfloat16(), "BatchMatMul", {2, 4, 5}, {2, 5, 3});
}

}  // namespace troupe::test
