// Products of f16 and bf16: summed in f32, rounded once.
#include <doctest/doctest.h>

#include "graph/gradients.hpp"
#include "ops/api.hpp"
#include "ops/graph_api.hpp"
#include "tests/ops/api_interpreter.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

Tensor cast_to(const Tensor& x, DType to) { return run("Cast", {x}, {{"to", to}})[0]; }

// The f32 product of the same numbers, rounded.
Tensor rounded_product(const std::string& op, const Tensor& a, const Tensor& b, AttrMap attrs) {
  const Tensor wide =
      run(op, {cast_to(a, DType::f32), cast_to(b, DType::f32)}, std::move(attrs))[0];
  return cast_to(wide, a.dtype());
}

}  // namespace

TEST_CASE("MatMul of 16-bit floats is the f32 product, rounded once") {
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
        INFO(dtype_name(type) << " " << m << "x" << k << "x" << n << " mode " << mode);
        const Tensor product = run("MatMul", {a, b}, attrs)[0];
        CHECK(product.dtype() == type);
        CHECK(Tensor::same(product, rounded_product("MatMul", a, b, attrs)));
      }
}

TEST_CASE("BatchMatMul of 16-bit floats is the f32 product, rounded once") {
  std::mt19937_64 rng(test_seed());
  INFO("seed " << test_seed());
  for (DType type : {DType::f16, DType::bf16})
    for (int mode = 0; mode < 4; ++mode) {
      const bool ta = mode & 1, tb = mode & 2;
      const AttrMap attrs{{"transpose_a", ta}, {"transpose_b", tb}};
      const Tensor a = cast_to(random_f64(rng, ta ? Shape{5, 9, 4} : Shape{5, 4, 9}), type);
      const Tensor b = cast_to(random_f64(rng, tb ? Shape{5, 3, 9} : Shape{5, 9, 3}), type);
      CHECK(Tensor::same(run("BatchMatMul", {a, b}, attrs)[0],
                         rounded_product("BatchMatMul", a, b, attrs)));
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
