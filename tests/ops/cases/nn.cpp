// Rows for matrix products, activations, softmax, losses and normalisation.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kNnInf = std::numeric_limits<double>::infinity();
constexpr double kNnNan = std::numeric_limits<double>::quiet_NaN();

const AddCases products([] {
  const Tensor a = f64({2, 3}, {1, 2, 3, 4, 5, 6}), b = f64({3, 1}, {1, 0, -1});
  return Cases{
      {.op = "MatMul", .inputs = {a, b}, .differentiate = {0, 1}, .want = {f64({2, 1}, {-2, -2})}},
      {.op = "MatMul",
       .inputs = {any({3, 4}), any({3, 2})},
       .attrs = {{"transpose_a", true}},
       .differentiate = {0, 1}},
      {.op = "MatMul",
       .inputs = {any({4, 3}), any({2, 3})},
       .attrs = {{"transpose_b", true}},
       .differentiate = {0, 1}},
      {.op = "MatMul",
       .inputs = {any({3, 4}), any({2, 3})},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}},
       .differentiate = {0, 1}},
      {.op = "MatMul",
       .inputs = {f32({1, 2}, {1, 2}), f32({2, 1}, {3, 4})},
       .want = {f32({1, 1}, {11})}},
      {.op = "MatMul",
       .inputs = {i64({1, 2}, {1, 2}), i64({2, 1}, {3, 4})},
       .want = {i64({1, 1}, {11})}},
      {.op = "MatMul", .inputs = {f64({2, 0}, {}), f64({0, 1}, {})}, .want = {f64({2, 1}, {0, 0})}},
      {.op = "MatMul", .inputs = {a, a}, .error = "inner dimensions differ"},
      {.op = "BatchMatMul", .inputs = {any({2, 2, 3}), any({2, 3, 4})}, .differentiate = {0, 1}},
      {.op = "BatchMatMul",
       .inputs = {any({2, 1, 3, 2}), any({2, 1, 4, 3})},
       .attrs = {{"transpose_a", true}, {"transpose_b", true}},
       .differentiate = {0, 1}},
      {.op = "BatchMatMul", .inputs = {any({2, 2, 3}), any({3, 3, 4})}, .error = "2"},
      {.op = "BatchMatMul", .inputs = {any({2, 2, 3}), any({2, 2, 4})}, .error = "2"},
  };
});

const AddCases activations([] {
  const Tensor x = f64({6}, {-3, -0.5, 0.25, 2, 5, 7}), dy = any({6}), y = any({6}, 0.1, 2);
  return Cases{
      {.op = "BiasAdd", .inputs = {any({2, 3, 4}), any({4})}, .differentiate = {0, 1}},
      {.op = "BiasAdd", .inputs = {any({2, 3}), any({2})}, .error = "does not fit"},
      {.op = "BiasAddGrad", .inputs = {any({2, 3, 4})}, .differentiate = {0}},
      {.op = "Relu",
       .inputs = {x},
       .differentiate = {0},
       .want = {f64({6}, {0, 0, 0.25, 2, 5, 7})}},
      {.op = "Relu6",
       .inputs = {x},
       .differentiate = {0},
       .want = {f64({6}, {0, 0, 0.25, 2, 5, 6})}},
      {.op = "Elu", .inputs = {x}, .differentiate = {0}},
      {.op = "Softplus", .inputs = {x}, .differentiate = {0}},
      {.op = "ReluGrad", .inputs = {dy, x}, .differentiate = {0}},
      {.op = "Relu6Grad", .inputs = {dy, x}, .differentiate = {0}},
      {.op = "EluGrad", .inputs = {dy, any({6}, -0.9, 1)}, .differentiate = {0, 1}},
      {.op = "SoftplusGrad", .inputs = {dy, y}, .differentiate = {0, 1}},
      {.op = "LeakyRelu",
       .inputs = {x, f64({}, {0.5})},
       .differentiate = {0, 1},
       .want = {f64({6}, {-1.5, -0.25, 0.25, 2, 5, 7})}},
      {.op = "LeakyRelu", .inputs = {any({40'000}), f64({}, {0.01})}},
      {.op = "LeakyRelu",
       .inputs = {any({2, 3}, 0.5, 1), any({2, 3}, 0.5, 1)},
       .differentiate = {0, 1}},
      {.op = "LeakyRelu", .inputs = {any({2, 3}), any({3})}, .differentiate = {0, 1}},
      {.op = "LeakyRelu", .inputs = {any({3}), any({2, 3})}, .differentiate = {0, 1}},
      {.op = "LeakyRelu",
       .inputs = {f64({4}, {kNnNan, -kNnInf, kNnInf, -0.0}), f64({}, {0.5})},
       .want = {f64({4}, {kNnNan, -kNnInf, kNnInf, -0.0})}},
      {.op = "LeakyRelu", .inputs = {any({2}), any({3})}, .error = "broadcast"},
      {.op = "LeakyReluGrad",
       .inputs = {any({2, 3}), any({2, 3}), any({3})},
       .differentiate = {0, 2}},
      {.op = "LeakyReluGrad",
       .inputs = {any({2, 3}), any({2, 3}), any({2, 3})},
       .differentiate = {0, 2}},
      {.op = "LeakyReluGrad", .inputs = {dy, x, f64({}, {0.5})}, .differentiate = {0, 2}},
      {.op = "LeakyReluGrad", .inputs = {any({2}), any({2}), any({3})}, .error = "broadcast"},
      {.op = "Selu", .inputs = {x}, .differentiate = {0}},
      {.op = "Selu", .inputs = {any({40'000}, -3, 3)}},
      {.op = "Selu", .inputs = {i32({1}, {1})}, .error = "i32"},
      {.op = "SeluGrad", .inputs = {dy, x}, .differentiate = {0, 1}},
      {.op = "SeluGrad", .inputs = {any({40'000}), any({40'000}, -3, 3)}},
      {.op = "SeluGrad", .inputs = {any({2}), any({3})}, .error = "[3]"},
      {.op = "Huber",
       .inputs = {f64({4}, {1.25, -1, 3, -4}), f64({}, {0.5}), f64({}, {2})},
       .differentiate = {0, 1, 2},
       .want = {f64({4}, {0.28125, 1.125, 3, 7})}},
      {.op = "Huber",
       .inputs = {any({2, 3}), any({3}), f64({2, 1}, {0.5, 1})},
       .differentiate = {0, 1, 2}},
      {.op = "Huber", .inputs = {any({40'000}), any({40'000}), f64({}, {0.5})}},
      {.op = "Huber",
       .inputs = {any({2, 3}, 2, 3), any({2, 3}, 0.1, 0.5), any({2, 3}, 0.5, 1)},
       .differentiate = {0, 1, 2}},
      {.op = "Huber", .inputs = {any({2}), any({3}), any({})}, .error = "broadcast"},
      {.op = "L2Loss",
       .inputs = {f64({3}, {1, 2, 3})},
       .differentiate = {0},
       .want = {f64({}, {7})}},
      {.op = "L2Loss", .inputs = {any({7, 1000})}},
      {.op = "L2Loss", .inputs = {f32({0}, {})}, .want = {f32({}, {0})}},
  };
});

const AddCases losses([] {
  const Tensor x = any({3, 4}, -2, 2);
  return Cases{
      {.op = "Softmax", .inputs = {x}, .differentiate = {0}},
      {.op = "Softmax", .inputs = {f64({2}, {7, 7})}, .want = {f64({2}, {0.5, 0.5})}},
      {.op = "LogSoftmax", .inputs = {any({2, 3, 5})}, .differentiate = {0}},
      {.op = "SoftmaxGrad", .inputs = {any({2, 3}), any({2, 3}, 0.1, 1)}, .differentiate = {0, 1}},
      {.op = "LogSoftmaxGrad",
       .inputs = {any({2, 3}), any({2, 3}, -2, -1)},
       .differentiate = {0, 1}},
      {.op = "SoftmaxCrossEntropyWithLogits",
       .inputs = {x, any({3, 4}, 0.1, 1)},
       .differentiate = {0, 1}},
      {.op = "SoftmaxCrossEntropyWithLogits", .inputs = {x, any({4, 4})}, .error = "4"},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i64({3}, {0, 3, 1})},
       .differentiate = {0}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i32({3}, {0, 3, 1})},
       .differentiate = {0}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {x, i64({3}, {0, 4, 1})},
       .error = "label 4 at index 1 is outside [0, 4)"},
      {.op = "SparseSoftmaxCrossEntropyWithLogits", .inputs = {x, i64({2}, {0, 1})}, .error = "2"},
      {.op = "ScaleRows", .inputs = {any({3, 2, 2}), any({3})}, .differentiate = {0, 1}},
      {.op = "ScaleRows", .inputs = {any({3}), any({3})}, .differentiate = {0, 1}},
      {.op = "ScaleRows", .inputs = {any({3, 2}), any({2})}, .error = "does not fit"},
  };
});

const AddCases norms([] {
  const Tensor x = any({2, 3, 2, 4}, -2, 3), c = any({4}, 0.5, 2), v = any({4}, 0.2, 3);
  return Cases{
      {.op = "FusedBatchNorm", .inputs = {x, c, v, c, v}, .differentiate = {0, 1, 2}},
      {.op = "FusedBatchNorm",
       .inputs = {x, c, v, c, v},
       .attrs = {{"is_training", false}},
       .differentiate = {0, 1, 2}},
      {.op = "FusedBatchNorm",
       .inputs = {f64({2, 1}, {1, 3}), f64({1}, {1}), f64({1}, {5}), f64({1}, {0}), f64({1}, {0})},
       .attrs = {{"epsilon", 0.0}},
       .want = {f64({2, 1}, {4, 6}), f64({1}, {2}), f64({1}, {2}), f64({1}, {1})}},
      {.op = "FusedBatchNorm", .inputs = {x, c, any({3}), c, v}, .error = "3"},
      {.op = "FusedBatchNormGrad",
       .inputs = {any({5, 4}), any({5, 4}), c, v, c, v, c, v},
       .differentiate = {0, 1, 2, 3, 4, 5, 6, 7}},
      {.op = "FusedBatchNormGrad",
       .inputs = {any({2, 3, 4}), any({2, 3, 4}), c, v, c, v, c, v},
       .attrs = {{"is_training", false}},
       .differentiate = {0, 1, 2, 3, 4}},
  };
});

}  // namespace
}  // namespace troupe::test
