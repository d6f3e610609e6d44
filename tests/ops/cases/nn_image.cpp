// Rows for convolutions and pools.
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases convolutions([] {
  const Tensor x = any({2, 5, 4, 3}), f = any({3, 2, 3, 2});
  const Tensor x_sizes = i64({4}, {2, 5, 4, 3}), f_sizes = i64({4}, {3, 2, 3, 2});
  const AttrMap strided{{"strides", ints({2, 1})}, {"padding", "VALID"}};
  const AttrMap dilated{{"dilations", ints({1, 2, 2, 1})}};
  const AttrMap padded{{"padding", "EXPLICIT"}, {"explicit_paddings", ints({1, 2, 0, 3})}};
  return Cases{
      {.op = "Conv2D",
       .inputs = {f64({1, 1, 3, 1}, {1, 2, 3}), f64({1, 2, 1, 1}, {10, 1})},
       .want = {f64({1, 1, 3, 1}, {12, 23, 30})}},
      {.op = "Conv2D", .inputs = {x, f}, .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {x, f}, .attrs = strided, .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {x, f}, .attrs = dilated, .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {x, f}, .attrs = padded, .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {x, any({1, 1, 3, 4})}, .differentiate = {0, 1}},
      {.op = "Conv2D", .inputs = {x, any({3, 2, 2, 2})}, .error = "[3,2,2,2]"},
      // 4 channels in 2 groups; each channel with 2 filters of its own.
      {.op = "Conv2D",
       .inputs = {any({1, 3, 4, 4}), any({2, 2, 2, 4})},
       .attrs = {{"groups", 2}, {"strides", ints({1, 2})}},
       .differentiate = {0, 1}},
      {.op = "Conv2D",
       .inputs = {any({2, 3, 4, 2}), any({2, 3, 1, 4})},
       .attrs = {{"groups", 2}, {"dilations", ints({1, 2})}},
       .differentiate = {0, 1}},
      {.op = "Conv2D",
       .inputs = {f64({1, 1, 2, 2}, {1, 2, 3, 4}), f64({1, 2, 1, 2}, {10, 100, 1, 2})},
       .attrs = {{"groups", 2}, {"padding", "VALID"}},
       .want = {f64({1, 1, 1, 2}, {13, 208})}},
      {.op = "Conv2D",
       .inputs = {any({1, 3, 4, 4}), any({2, 2, 2, 3})},
       .attrs = {{"groups", 2}},
       .error = "2 groups do not divide the 3 output channels"},
      {.op = "Conv2D",
       .inputs = {any({1, 3, 4, 4}), any({2, 2, 4, 4})},
       .attrs = {{"groups", 2}},
       .error = "of 2 groups"},
      {.op = "Conv2D", .inputs = {x, f}, .attrs = {{"groups", 0}}, .error = "groups must be"},
      {.op = "Conv2DBackpropInput",
       .inputs = {i64({4}, {1, 3, 4, 4}), any({2, 2, 2, 4}), any({1, 3, 4, 4})},
       .attrs = {{"groups", 2}},
       .differentiate = {1, 2}},
      {.op = "Conv2DBackpropInput",
       .inputs = {i64({4}, {1, 3, 4, 3}), any({2, 2, 2, 4}), any({1, 3, 4, 4})},
       .attrs = {{"groups", 2}},
       .error = "of 2 groups"},
      {.op = "Conv2DBackpropFilter",
       .inputs = {any({1, 3, 4, 4}), i64({4}, {2, 2, 2, 4}), any({1, 3, 4, 4})},
       .attrs = {{"groups", 2}},
       .differentiate = {0, 2}},
      {.op = "Conv2D",
       .inputs = {x, f},
       .attrs = {{"strides", ints({0, 1})}},
       .error = "strides must be positive"},
      {.op = "Conv2D",
       .inputs = {x, any({6, 1, 3, 2})},
       .attrs = {{"padding", "VALID"}},
       .error = "does not fit"},
      {.op = "Conv2DBackpropInput",
       .inputs = {x_sizes, f, any({2, 5, 4, 2})},
       .differentiate = {1, 2}},
      {.op = "Conv2DBackpropInput", .inputs = {x_sizes, f, any({2, 4, 4, 2})}, .error = "4"},
      {.op = "Conv2DBackpropFilter",
       .inputs = {x, f_sizes, any({2, 5, 4, 2})},
       .differentiate = {0, 2}},
      {.op = "Conv2DBackpropFilter",
       .inputs = {x, i64({4}, {3, 2, 3, -2}), any({2, 5, 4, 2})},
       .error = "-2"},
  };
});

const AddCases pools([] {
  const Tensor x = any({2, 5, 4, 3});
  const AttrMap attrs{{"ksize", ints({2, 3})}, {"strides", ints({1, 2, 2, 1})}};
  const AttrMap same{{"ksize", ints({2, 3})}, {"strides", ints({2, 1})}, {"padding", "SAME"}};
  return Cases{
      {.op = "MaxPool",
       .inputs = {f64({1, 2, 2, 1}, {1, 4, 3, 2})},
       .attrs = {{"ksize", ints({2, 2})}, {"strides", ints({2, 2})}},
       .want = {f64({1, 1, 1, 1}, {4})}},
      {.op = "MaxPool", .inputs = {x}, .attrs = attrs, .differentiate = {0}},
      {.op = "MaxPool", .inputs = {x}, .attrs = same, .differentiate = {0}},
      {.op = "MaxPool",
       .inputs = {x},
       .attrs = {{"ksize", ints({2})}, {"strides", ints({1, 1})}},
       .error = "ksize must be"},
      {.op = "MaxPoolGrad",
       .inputs = {f64({1, 2, 2, 1}, {4, 4, 3, 4}), f64({1, 1, 1, 1}, {4}), f64({1, 1, 1, 1}, {7})},
       .attrs = {{"ksize", ints({2, 2})}, {"strides", ints({2, 2})}},
       .want = {f64({1, 2, 2, 1}, {7, 0, 0, 0})}},
      {.op = "MaxPoolGrad",
       .inputs = {x, any({2, 2, 1, 3}, 0.5, 1), any({2, 2, 1, 3})},
       .attrs = attrs,
       .differentiate = {2}},
      {.op = "MaxPoolPick",
       .inputs = {f64({1, 2, 2, 1}, {3, 4, 4, 4}), f64({1, 1, 1, 1}, {4}),
                  f64({1, 2, 2, 1}, {1, 2, 3, 4})},
       .attrs = {{"ksize", ints({2, 2})}, {"strides", ints({2, 2})}},
       .differentiate = {2},
       .want = {f64({1, 1, 1, 1}, {2})}},
      {.op = "MaxPoolPick",
       .inputs = {x, any({2, 3, 4, 3}, 0.5, 1), any({2, 5, 4, 3})},
       .attrs = same,
       .differentiate = {2}},
      {.op = "MaxPoolPick",
       .inputs = {x, any({2, 3, 4, 3}), any({2, 5, 4, 2})},
       .attrs = same,
       .error = "2"},
      {.op = "AvgPool", .inputs = {x}, .attrs = attrs, .differentiate = {0}},
      {.op = "AvgPool", .inputs = {x}, .attrs = same, .differentiate = {0}},
      {.op = "AvgPool", .inputs = {any({std::int64_t{1} << 45, 1, 2, 0})}, .attrs = same},
      {.op = "AvgPoolGrad",
       .inputs = {i64({4}, {2, 5, 4, 3}), any({2, 2, 1, 3})},
       .attrs = attrs,
       .differentiate = {1}},
      {.op = "AvgPoolGrad",
       .inputs = {i64({4}, {2, 5, 4, 3}), any({2, 2, 2, 3})},
       .attrs = attrs,
       .error = "2"},
  };
});

}  // namespace
}  // namespace troupe::test
