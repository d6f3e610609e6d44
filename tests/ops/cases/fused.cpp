// What compiling a step makes of several ops (graph/passes/fuse.cpp).
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases fused([] {
  const Tensor x = f64({1, 1, 3, 1}, {1, 2, 3}), filter = f64({1, 2, 1, 2}, {1, -1, 2, -2});
  const Tensor bias = f64({2}, {0.5, 7});
  const AttrMap relu{{"relu", true}};
  return Cases{
      {.op = "_Conv2DBias",
       .inputs = {x, filter, bias},
       .want = {f64({1, 1, 3, 2}, {5.5, 2, 8.5, -1, 3.5, 4})}},
      {.op = "_Conv2DBias",
       .inputs = {x, filter, bias},
       .attrs = relu,
       .want = {f64({1, 1, 3, 2}, {5.5, 2, 8.5, 0, 3.5, 4})}},
      {.op = "_Conv2DBias",
       .inputs = {f32({1, 1, 3, 1}, {1, float(kNan), -3}), f32({1, 1, 1, 1}, {1}), f32({1}, {1})},
       .attrs = relu,
       .want = {f32({1, 1, 3, 1}, {2, float(kNan), 0})}},
      // 1 + 1/512 is no number of bf16: the sum is rounded once, in the end.
      {.op = "_Conv2DBias",
       .inputs = {halves<bfloat16>({1, 1, 1, 2}, {1, 0.001953125}),
                  halves<bfloat16>({1, 1, 2, 1}, {1, 1}), halves<bfloat16>({1}, {-1})},
       .want = {halves<bfloat16>({1, 1, 1, 1}, {0.001953125})}},
      {.op = "_Conv2DBias",
       .inputs = {f64({0, 1, 3, 1}, {}), filter, bias},
       .attrs = relu,
       .want = {f64({0, 1, 3, 2}, {})}},
      {.op = "_Conv2DBias", .inputs = {x, filter, f64({3}, {1, 2, 3})}, .error = "bias [3]"},
      {.op = "_Conv2DBias", .inputs = {x, filter, f64({1, 2}, {1, 2})}, .error = "[1,2]"},
      {.op = "_Conv2DBias",
       .inputs = {x, f64({1, 2, 2, 1}, {1, 2, 3, 4}), bias},
       .error = "[1,2,2,1]"},
  };
});

const AddCases fused_products([] {
  const Tensor a = f64({2, 3}, {1, 2, 3, -1, 0, 2}), b = f64({3, 2}, {1, -1, 0, 2, 2, -2});
  const Tensor bias = f64({2}, {0.5, 2});
  const AttrMap relu{{"relu", true}};
  return Cases{
      {.op = "_MatMulBias", .inputs = {a, b, bias}, .want = {f64({2, 2}, {7.5, -1, 3.5, -1})}},
      {.op = "_MatMulBias",
       .inputs = {a, b, bias},
       .attrs = relu,
       .want = {f64({2, 2}, {7.5, 0, 3.5, 0})}},
      {.op = "_MatMulBias",
       .inputs = {f64({3, 2}, {1, -1, 2, 0, 3, 2}), f64({2, 3}, {1, 0, 2, -1, 2, -2}), bias},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}},
       .want = {f64({2, 2}, {7.5, -1, 3.5, -1})}},
      {.op = "_MatMulBias",
       .inputs = {f32({3, 1}, {1, float(kNan), -3}), f32({1, 1}, {1}), f32({1}, {1})},
       .attrs = relu,
       .want = {f32({3, 1}, {2, float(kNan), 0})}},
      // 1 + 1/512 is no number of bf16: the sum is rounded once, in the end.
      {.op = "_MatMulBias",
       .inputs = {halves<bfloat16>({1, 2}, {1, 0.001953125}), halves<bfloat16>({2, 1}, {1, 1}),
                  halves<bfloat16>({1}, {-1})},
       .want = {halves<bfloat16>({1, 1}, {0.001953125})}},
      {.op = "_MatMulBias",
       .inputs = {f64({2, 0}, {}), f64({0, 2}, {}), f64({2}, {0.5, -2})},
       .attrs = relu,
       .want = {f64({2, 2}, {0.5, 0, 0.5, 0})}},
      {.op = "_MatMulBias",
       .inputs = {f64({0, 3}, {}), b, bias},
       .attrs = relu,
       .want = {f64({0, 2}, {})}},
      {.op = "_MatMulBias", .inputs = {a, b, f64({3}, {1, 2, 3})}, .error = "bias [3]"},
      {.op = "_MatMulBias", .inputs = {a, b, f64({1, 2}, {1, 2})}, .error = "[1,2]"},
      {.op = "_MatMulBias", .inputs = {a, a, bias}, .error = "inner dimensions differ"},
      {.op = "_MatMulBias",
       .inputs = {f64({1, 2, 3}, {1, 2, 3, 4, 5, 6}), b, bias},
       .error = "[1,2,3]"},
  };
});

}  // namespace
}  // namespace troupe::test
