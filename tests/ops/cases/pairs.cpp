// Rows of ops whose inputs have different shapes in all other rows: here two of them could be one
// tensor.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases arrays([] {
  const Tensor x = any({2, 3}, 0.5, 2);
  const Tensor whole = i64({2}, {2, 3});
  return Cases{
      {.op = "Concat", .inputs = {x, any({2, 3})}, .attrs = {{"axis", 1}}, .differentiate = {0, 1}},
      {.op = "SliceAdd",
       .inputs = {x, any({2, 3}), i64({2}, {0, 0}), whole},
       .differentiate = {0, 1}},
      {.op = "StridedSliceAdd",
       .inputs = {x, any({2, 3}), whole, i64({1}, {0}), i64({1}, {2}), i64({1}, {1})},
       .differentiate = {0, 1}},
      {.op = "GatherAdd",
       .inputs = {x, any({2, 3}), i64({2}, {1, 1}), whole},
       .differentiate = {0, 1}},
      {.op = "ProdGrad",
       .inputs = {any({3, 1}), any({3, 1}, 1, 2)},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0, 1}},
      {.op = "ProdGradAlong",
       .inputs = {any({3, 1}), any({3, 1}, 1, 2), any({3, 1}, 0, 3), any({3, 1}, 0, 2)},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0, 1, 2, 3}},
      {.op = "PowGradBase",
       .inputs = {x, any({2, 3}, 0.5, 1), any({2, 3}, 1.5, 3)},
       .differentiate = {0, 1, 2}},
      {.op = "PowGradExponent",
       .inputs = {x, any({2, 3}, 0.5, 1), any({2, 3}, 1.5, 3)},
       .differentiate = {0, 1, 2}},
  };
});

const AddCases equal_factors([] {
  const Tensor image = any({2, 2, 2, 2}), filter = any({2, 2, 2, 2}, 0, 2);
  const Tensor sizes = i64({4}, {2, 2, 2, 2});
  return Cases{
      {.op = "MatMul", .inputs = {any({3, 3}), any({3, 3}, 0, 2)}, .differentiate = {0, 1}},
      {.op = "BatchMatMul",
       .inputs = {any({2, 3, 3}), any({2, 3, 3}, 0, 2)},
       .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {image, filter}, .differentiate = {0, 1}},
      {.op = "Conv2DBackpropInput", .inputs = {sizes, filter, image}, .differentiate = {1, 2}},
      {.op = "Conv2DBackpropFilter", .inputs = {image, sizes, filter}, .differentiate = {0, 2}},
  };
});

const AddCases channels([] {
  const Tensor x = any({3}, 0.5, 2), other = any({3}, 1, 3);
  return Cases{
      {.op = "BiasAdd", .inputs = {x, other}, .differentiate = {0, 1}},
      {.op = "FusedBatchNorm", .inputs = {x, other, x, other, x}, .differentiate = {0, 1, 2}},
      {.op = "FusedBatchNorm",
       .inputs = {x, other, x, other, x},
       .attrs = {{"is_training", false}},
       .differentiate = {0, 1, 2}},
      {.op = "FusedBatchNormGrad",
       .inputs = {x, other, x, other, x, other, x, other},
       .differentiate = {0, 1, 2, 3, 4, 5, 6, 7}},
  };
});

}  // namespace
}  // namespace troupe::test
