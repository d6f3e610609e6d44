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

}  // namespace
}  // namespace troupe::test
