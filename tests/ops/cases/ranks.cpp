// Rows of the conformance test: ops that take tensors of any rank, or along any axis.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases batched_products([] {
  return Cases{
      // One matrix for all; a batch of one; different ranks; both stretched.
      {.op = "BatchMatMul", .inputs = {any({2, 3, 4}), any({4, 2})}, .differentiate = {0, 1}},
      {.op = "BatchMatMul", .inputs = {any({3, 4}), any({2, 4, 2})}, .differentiate = {0, 1}},
      {.op = "BatchMatMul", .inputs = {any({2, 1, 2, 3}), any({3, 3, 2})}, .differentiate = {0, 1}},
      {.op = "BatchMatMul",
       .inputs = {any({1, 3, 2}), any({2, 4, 3})},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}},
       .differentiate = {0, 1}},
      {.op = "BatchMatMul",
       .inputs = {any({2, 3, 2}), any({3, 4})},
       .attrs = {{"transpose_a", true}},
       .differentiate = {0, 1}},
      {.op = "BatchMatMul",
       .inputs = {f64({2, 1, 2}, {1, 2, 3, 4}), f64({2, 1}, {10, 100})},
       .want = {f64({2, 1, 1}, {210, 430})}},
      {.op = "BatchMatMul",
       .inputs = {f64({1, 2}, {1, 2}), f64({2, 2, 1}, {1, 10, 100, 1000})},
       .want = {f64({2, 1, 1}, {21, 2100})}},
      {.op = "BatchMatMul", .inputs = {any({0, 2, 3}), any({3, 4})}, .want = {f64({0, 2, 4}, {})}},
      {.op = "BatchMatMul",
       .inputs = {f32({1, 1, 2}, {1, 2}), f32({2, 1}, {3, 4})},
       .want = {f32({1, 1, 1}, {11})}},
      {.op = "BatchMatMul",
       .inputs = {any({2, 2, 3}), any({3, 3, 4})},
       .error = "a is [2,2,3], b is [3,3,4]"},
      {.op = "BatchMatMul", .inputs = {any({3}), any({3, 4})}, .error = "[3]"},
  };
});

const AddCases losses_of_any_rank([] {
  const Tensor x = any({2, 3, 4}, -2, 2), row = any({4}, -2, 2);
  const double half = 0.6931471805599453;  // -log 0.5
  return Cases{
      {.op = "SoftmaxCrossEntropyWithLogits",
       .inputs = {x, any({2, 3, 4}, 0.1, 1)},
       .differentiate = {0, 1}},
      {.op = "SoftmaxCrossEntropyWithLogits",
       .inputs = {row, any({4}, 0.1, 1)},
       .differentiate = {0, 1}},
      {.op = "SoftmaxCrossEntropyWithLogits",
       .inputs = {f64({1, 2, 2}, {7, 7, 0, 0}), f64({1, 2, 2}, {1, 0, 0, 2})},
       .want = {f64({1, 2}, {half, 2 * half}), f64({1, 2, 2}, {-0.5, 0.5, 1, -1})}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i64({2, 3}, {0, 3, 1, 2, 2, 0})},
       .differentiate = {0}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {row, i32({}, {2})},
       .differentiate = {0}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {f64({2, 1, 2}, {7, 7, 0, 0}), i64({2, 1}, {1, 0})},
       .want = {f64({2, 1}, {half, half}), f64({2, 1, 2}, {0.5, -0.5, -0.5, 0.5})}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {any({0, 3, 4}), i64({0, 3}, {})},
       .want = {f64({0, 3}, {}), f64({0, 3, 4}, {})}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i64({2, 3}, {0, 3, 1, 2, 2, 4})},
       .error = "label 4 at index 5 is outside [0, 4)"},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i64({3}, {0, 1, 2})},
       .error = "[3]"},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {f64({}, {1}), i64({}, {0})},
       .error = "[]"},
      {.op = "SoftmaxCrossEntropyWithLogits", .inputs = {x, any({2, 3, 3})}, .error = "[2,3,3]"},
      {.op = "ScaleRows", .inputs = {any({2, 3, 4}), any({2, 3})}, .differentiate = {0, 1}},
      {.op = "ScaleRows", .inputs = {any({2, 3}), any({2, 3})}, .differentiate = {0, 1}},
      {.op = "ScaleRows", .inputs = {any({3}), any({})}, .differentiate = {0, 1}},
      {.op = "ScaleRows", .inputs = {any({2, 3, 4}), any({3, 2})}, .error = "does not fit"},
      {.op = "ScaleRows", .inputs = {any({2}), any({2, 2})}, .error = "does not fit"},
  };
});

const AddCases gathers_along([] {
  const Tensor p = f64({2, 3}, {1, 2, 3, 4, 5, 6}), blocks = any({3, 4, 2});
  const auto along = [](std::int64_t axis) { return AttrMap{{"axis", axis}}; };
  return Cases{
      {.op = "Gather",
       .inputs = {p, i64({2}, {2, 0})},
       .attrs = along(1),
       .differentiate = {0},
       .want = {f64({2, 2}, {3, 1, 6, 4})}},
      {.op = "Gather",
       .inputs = {p, i32({}, {1})},
       .attrs = along(-1),
       .differentiate = {0},
       .want = {f64({2}, {2, 5})}},
      {.op = "Gather",
       .inputs = {blocks, i64({2, 2}, {0, 3, 3, 1})},
       .attrs = along(1),
       .differentiate = {0}},
      {.op = "Gather", .inputs = {any({3, 900, 40}), i64({3}, {7, 0, 7})}, .attrs = along(1)},
      {.op = "Gather",
       .inputs = {strings({1, 2}, {"a", "b"}), i64({3}, {1, 0, 1})},
       .attrs = along(1),
       .want = {strings({1, 3}, {"b", "a", "b"})}},
      {.op = "Gather",
       .inputs = {any({2, 3}), i64({0}, {})},
       .attrs = along(1),
       .want = {f64({2, 0}, {})}},
      {.op = "Gather", .inputs = {p, i64({1}, {3})}, .attrs = along(1), .error = "indices[0] = 3"},
      {.op = "Gather", .inputs = {p, i64({1}, {0})}, .attrs = along(2), .error = "axis 2"},
      {.op = "GatherGrad",
       .inputs = {any({2, 4}), i64({4}, {1, 1, 0, 1}), i64({2}, {2, 3})},
       .attrs = along(1),
       .differentiate = {0}},
      {.op = "GatherGrad",
       .inputs = {f64({2, 2}, {1, 2, 3, 4}), i64({2}, {1, 1}), i64({2}, {2, 3})},
       .attrs = along(1),
       .want = {f64({2, 3}, {0, 3, 0, 0, 7, 0})}},
      {.op = "GatherGrad",
       .inputs = {any({3, 3, 40}), i64({3}, {7, 0, 7}), i64({3}, {3, 900, 40})},
       .attrs = along(1)},
      {.op = "GatherAdd",
       .inputs = {p, f64({2, 2}, {10, 20, 30, 40}), i32({2}, {2, 2}), i64({2}, {2, 3})},
       .attrs = along(1),
       .differentiate = {0, 1},
       .want = {f64({2, 3}, {1, 2, 33, 4, 5, 76})}},
  };
});

}  // namespace
}  // namespace troupe::test
