// Convolutions of the two 16-bit floats, and their gradients.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

template <class T>
Cases half_convolutions() {
  const Tensor x = halves<T>({1, 1, 3, 1}, {1, 2, 3}), filter = halves<T>({1, 2, 1, 1}, {0.5, -1});
  const Tensor dy = halves<T>({1, 1, 3, 1}, {1, 2, 4});
  const Tensor two = halves<T>({1, 1, 2, 2}, {1, 2, 3, 4});
  const AttrMap in_two{{"groups", 2}, {"padding", "VALID"}};
  // 1 + 1 + ... would stay at 2048 in f16 and at 256 in bf16.
  Tensor ones = Tensor::make(dtype_of<T>, Shape{1, 1, 4096, 1}).value();
  for (std::int64_t i = 0; i < ones.elements(); ++i) ones.mutable_data<T>()[i] = T(1.0f);
  return {
      {.op = "Conv2D", .inputs = {x, filter}, .want = {halves<T>({1, 1, 3, 1}, {-1.5, -2, 1.5})}},
      {.op = "Conv2D",
       .inputs = {two, halves<T>({1, 2, 1, 2}, {8, 64, 1, 2})},
       .attrs = in_two,
       .want = {halves<T>({1, 1, 1, 2}, {11, 136})}},
      {.op = "Conv2D",
       .inputs = {ones, ones.reshaped(Shape{1, 4096, 1, 1})},
       .attrs = {{"padding", "VALID"}},
       .want = {halves<T>({1, 1, 1, 1}, {4096})}},
      {.op = "Conv2D",
       .inputs = {halves<T>({0, 2, 2, 1}, {}), filter},
       .want = {halves<T>({0, 2, 2, 1}, {})}},
      {.op = "Conv2D",
       .inputs = {halves<T>({1, 1, 2, 0}, {}), halves<T>({1, 1, 0, 1}, {})},
       .want = {halves<T>({1, 1, 2, 1}, {0, 0})}},
      {.op = "Conv2D", .inputs = {x, f32({1, 2, 1, 1}, {1, 1})}, .error = "f32"},
      {.op = "Conv2D", .inputs = {x, two}, .error = "[1,1,2,2]"},
      {.op = "Conv2D", .inputs = {x, filter}, .attrs = {{"groups", 0}}, .error = "groups must be"},
      {.op = "Conv2DBackpropInput",
       .inputs = {i64({4}, {1, 1, 3, 1}), filter, dy},
       .want = {halves<T>({1, 1, 3, 1}, {0.5, 0, 0})}},
      {.op = "Conv2DBackpropInput",
       .inputs = {i32({4}, {1, 1, 2, 2}), halves<T>({1, 2, 1, 2}, {8, 64, 1, 2}),
                  halves<T>({1, 1, 1, 2}, {1, 0.5})},
       .attrs = in_two,
       .want = {halves<T>({1, 1, 2, 2}, {8, 32, 1, 1})}},
      {.op = "Conv2DBackpropInput",
       .inputs = {i64({4}, {1, 1, 3, 1}), filter, two},
       .error = "[1,1,2,2]"},
      {.op = "Conv2DBackpropInput",
       .inputs = {i64({4}, {1, 1, 3, 2}), filter, dy},
       .error = "other channels"},
      {.op = "Conv2DBackpropFilter",
       .inputs = {x, i64({4}, {1, 2, 1, 1}), dy},
       .want = {halves<T>({1, 2, 1, 1}, {17, 8})}},
      {.op = "Conv2DBackpropFilter",
       .inputs = {two, i32({4}, {1, 2, 1, 2}), halves<T>({1, 1, 1, 2}, {1, 0.5})},
       .attrs = in_two,
       .want = {halves<T>({1, 2, 1, 2}, {1, 1, 3, 2})}},
      {.op = "Conv2DBackpropFilter",
       .inputs = {ones, i64({4}, {1, 1, 1, 1}), ones},
       .want = {halves<T>({1, 1, 1, 1}, {4096})}},
      {.op = "Conv2DBackpropFilter", .inputs = {x, i64({4}, {1, 2, 1, -1}), dy}, .error = "-1"},
      {.op = "Conv2DBackpropFilter",
       .inputs = {x, i64({4}, {1, 2, 1, 1}), two},
       .error = "[1,1,2,2]"},
  };
}

const AddCases f16_convolutions([] { return half_convolutions<half>(); });
const AddCases bf16_convolutions([] { return half_convolutions<bfloat16>(); });

}  // namespace
}  // namespace troupe::test
