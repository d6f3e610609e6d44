// Products of the two 16-bit floats.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

template <class T>
Cases products() {
  const Tensor a = halves<T>({2, 3}, {1, 2, 3, 4, 5, 6}), b = halves<T>({3, 1}, {1, 0.5, -1});
  const Tensor want = halves<T>({2, 1}, {-1, 0.5});
  return {
      {.op = "MatMul", .inputs = {a, b}, .want = {want}},
      {.op = "MatMul",
       .inputs = {halves<T>({3, 2}, {1, 4, 2, 5, 3, 6}), halves<T>({1, 3}, {1, 0.5, -1})},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}},
       .want = {want}},
      {.op = "MatMul",
       .inputs = {halves<T>({2, 0}, {}), halves<T>({0, 1}, {})},
       .want = {halves<T>({2, 1}, {0, 0})}},
      {.op = "MatMul", .inputs = {a, a}, .error = "inner dimensions differ"},
      {.op = "MatMul", .inputs = {a, f32({3, 1}, {1, 1, 1})}, .error = "f32"},
      {.op = "BatchMatMul",
       .inputs = {halves<T>({2, 1, 2}, {1, 2, 3, 4}), halves<T>({2, 2, 1}, {1, 2, 3, 4})},
       .want = {halves<T>({2, 1, 1}, {5, 25})}},
      {.op = "BatchMatMul",
       .inputs = {halves<T>({2, 1, 2}, {1, 2, 3, 4}), halves<T>({2, 1}, {1, 2})},
       .want = {halves<T>({2, 1, 1}, {5, 11})}},
      {.op = "BatchMatMul", .inputs = {a, a}, .error = "2"},
  };
}

const AddCases f16_products([] { return products<half>(); });
const AddCases bf16_products([] { return products<bfloat16>(); });

}  // namespace
}  // namespace troupe::test
