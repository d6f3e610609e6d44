// Biases, ReLUs, pools and losses of the two 16-bit floats, and their gradients.
#include <numbers>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

template <class T>
Cases half_layers() {
  const Tensor x = halves<T>({2, 3}, {1, -2, 0.5, 7, 0, -8}),
               dy = halves<T>({2, 3}, {1, 2, 3, 4, 5, 6});
  Tensor ones = Tensor::make(dtype_of<T>, Shape{4096, 1}).value();
  for (std::int64_t i = 0; i < ones.elements(); ++i) ones.mutable_data<T>()[i] = T(1.0f);
  const AttrMap pool{{"ksize", std::vector<std::int64_t>{2, 2}},
                     {"strides", std::vector<std::int64_t>{2, 2}}};
  const Tensor image = halves<T>({1, 2, 2, 1}, {3, 4, 4, -1}), top = halves<T>({1, 1, 1, 1}, {4});
  const AttrMap whole{{"ksize", std::vector<std::int64_t>{4096, 1}},
                      {"strides", std::vector<std::int64_t>{1, 1}}};
  return {
      {.op = "MaxPool", .inputs = {image}, .attrs = pool, .want = {top}},
      {.op = "MaxPool",
       .inputs = {halves<T>({1, 2, 2, 1}, {3, kNan, kInf, -1})},
       .attrs = pool,
       .want = {halves<T>({1, 1, 1, 1}, {kNan})}},
      {.op = "MaxPoolGrad",
       .inputs = {image, top, halves<T>({1, 1, 1, 1}, {7})},
       .attrs = pool,
       .want = {halves<T>({1, 2, 2, 1}, {0, 7, 0, 0})}},
      {.op = "MaxPoolGrad", .inputs = {image, image, image}, .attrs = pool, .error = "2"},
      {.op = "MaxPoolPick",
       .inputs = {image, top, halves<T>({1, 2, 2, 1}, {1, 2, 3, 4})},
       .attrs = pool,
       .want = {halves<T>({1, 1, 1, 1}, {2})}},
      {.op = "AvgPool", .inputs = {image}, .attrs = pool, .want = {halves<T>({1, 1, 1, 1}, {2.5})}},
      // As the sums below.
      {.op = "AvgPool",
       .inputs = {Tensor(ones.dtype(), Shape{1, 4096, 1, 1}, ones.buffer())},
       .attrs = whole,
       .want = {halves<T>({1, 1, 1, 1}, {1})}},
      {.op = "AvgPoolGrad",
       .inputs = {i64({4}, {1, 2, 2, 1}), halves<T>({1, 1, 1, 1}, {6})},
       .attrs = pool,
       .want = {halves<T>({1, 2, 2, 1}, {1.5, 1.5, 1.5, 1.5})}},
      {.op = "Softmax", .inputs = {halves<T>({2}, {9, 9})}, .want = {halves<T>({2}, {0.5, 0.5})}},
      {.op = "Softmax",
       .inputs = {halves<T>({2}, {kNan, 1})},
       .want = {halves<T>({2}, {kNan, kNan})}},
      {.op = "SoftmaxGrad",
       .inputs = {halves<T>({2}, {1, 3}), halves<T>({2}, {0.5, 0.5})},
       .want = {halves<T>({2}, {-0.5, 0.5})}},
      {.op = "LogSoftmax",
       .inputs = {halves<T>({2}, {9, 9})},
       .want = {halves<T>({2}, {-std::numbers::ln2, -std::numbers::ln2})}},
      {.op = "LogSoftmaxGrad",
       .inputs = {halves<T>({2}, {1, 3}), halves<T>({2}, {-kInf, 0})},
       .want = {halves<T>({2}, {1, -1})}},
      {.op = "SoftmaxCrossEntropyWithLogits",
       .inputs = {halves<T>({1, 2}, {0, 0}), halves<T>({1, 2}, {1, 0})},
       .want = {halves<T>({1}, {std::numbers::ln2}), halves<T>({1, 2}, {-0.5, 0.5})}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {halves<T>({1, 2}, {0, 0}), i64({1}, {1})},
       .want = {halves<T>({1}, {std::numbers::ln2}), halves<T>({1, 2}, {0.5, -0.5})}},
      {.op = "SparseSoftmaxCrossEntropyWithLogits",
       .inputs = {halves<T>({1, 2}, {0, 0}), i64({1}, {2})},
       .error = "outside [0, 2)"},
      {.op = "ScaleRows",
       .inputs = {halves<T>({2, 2}, {1, 2, kInf, 4}), halves<T>({2}, {2, 0})},
       .want = {halves<T>({2, 2}, {2, 4, 0, 0})}},
      {.op = "BiasAdd",
       .inputs = {x, halves<T>({3}, {1, 2, 0.25})},
       .want = {halves<T>({2, 3}, {2, 0, 0.75, 8, 2, -7.75})}},
      {.op = "BiasAdd", .inputs = {x, halves<T>({2}, {1, 2})}, .error = "does not fit"},
      {.op = "BiasAdd", .inputs = {x, f32({3}, {1, 2, 3})}, .error = "f32"},
      {.op = "BiasAddGrad", .inputs = {dy}, .want = {halves<T>({3}, {5, 7, 9})}},
      // 1 + 1 + ... would stay at 2048 in f16 and at 256 in bf16.
      {.op = "BiasAddGrad", .inputs = {ones}, .want = {halves<T>({1}, {4096})}},
      {.op = "Relu", .inputs = {x}, .want = {halves<T>({2, 3}, {1, 0, 0.5, 7, 0, 0})}},
      {.op = "Relu",
       .inputs = {halves<T>({2}, {kNan, -kInf})},
       .want = {halves<T>({2}, {kNan, 0})}},
      {.op = "ReluGrad", .inputs = {dy, x}, .want = {halves<T>({2, 3}, {1, 0, 3, 4, 0, 0})}},
      {.op = "ReluGrad", .inputs = {dy, halves<T>({3}, {1, 2, 3})}, .error = "y is [3]"},
      {.op = "Relu6", .inputs = {x}, .want = {halves<T>({2, 3}, {1, 0, 0.5, 6, 0, 0})}},
      {.op = "Relu6Grad", .inputs = {dy, x}, .want = {halves<T>({2, 3}, {1, 0, 3, 0, 0, 0})}},
      {.op = "Elu", .inputs = {halves<T>({2}, {0.5, -kInf})}, .want = {halves<T>({2}, {0.5, -1})}},
      {.op = "EluGrad",
       .inputs = {halves<T>({2}, {2, 4}), halves<T>({2}, {0.5, -0.5})},
       .want = {halves<T>({2}, {2, 2})}},
      {.op = "Softplus", .inputs = {halves<T>({1}, {-kInf})}, .want = {halves<T>({1}, {0})}},
      {.op = "SoftplusGrad",
       .inputs = {halves<T>({1}, {3}), halves<T>({1}, {0})},
       .want = {halves<T>({1}, {0})}},
  };
}

const AddCases f16_layers([] { return half_layers<half>(); });
const AddCases bf16_layers([] { return half_layers<bfloat16>(); });

}  // namespace
}  // namespace troupe::test
