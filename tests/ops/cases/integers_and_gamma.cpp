// Rows of the conformance test: bits of integers, the gamma function, sequences reversed.
#include <cmath>
#include <numbers>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kEuler = 0.57721566490153286;

const AddCases bits([] {
  const Tensor a = i32({4}, {12, -1, INT32_MIN, 0}), b = i32({4}, {10, 7, -1, 5});
  const Tensor by = i32({4}, {1, 31, 32, -1});
  Cases rows{
      {.op = "BitwiseAnd", .inputs = {a, b}, .want = {i32({4}, {8, 7, INT32_MIN, 0})}},
      {.op = "BitwiseOr", .inputs = {a, b}, .want = {i32({4}, {14, -1, -1, 5})}},
      {.op = "BitwiseXor", .inputs = {a, b}, .want = {i32({4}, {6, -8, INT32_MAX, 5})}},
      {.op = "BitwiseXor",
       .inputs = {i64({2, 1}, {1, -1}), i64({2}, {3, INT64_MIN})},
       .want = {i64({2, 2}, {2, INT64_MIN + 1, -4, INT64_MAX})}},
      {.op = "Invert", .inputs = {a}, .want = {i32({4}, {-13, 0, INT32_MAX, -1})}},
      {.op = "Invert",
       .inputs = {Tensor::of<std::uint8_t>(Shape{2}, {0, 200})},
       .want = {Tensor::of<std::uint8_t>(Shape{2}, {255, 55})}},
      {.op = "LeftShift",
       .inputs = {i32({4}, {3, 3, 3, 3}), by},
       .want = {i32({4}, {6, INT32_MIN, 0, 0})}},
      {.op = "LeftShift",
       .inputs = {Tensor::of<std::int8_t>(Shape{3}, {-1, 64, 1}),
                  Tensor::of<std::int8_t>(Shape{3}, {4, 1, 8})},
       .want = {Tensor::of<std::int8_t>(Shape{3}, {-16, -128, 0})}},
      {.op = "LeftShift",
       .inputs = {i64({2}, {1, 1}), i64({2}, {63, 64})},
       .want = {i64({2}, {INT64_MIN, 0})}},
      {.op = "RightShift",
       .inputs = {i32({4}, {-4, -4, -4, 4}), by},
       .want = {i32({4}, {-2, -1, -1, 0})}},
      {.op = "RightShift",
       .inputs = {Tensor::of<std::uint64_t>(Shape{2}, {UINT64_MAX, UINT64_MAX}),
                  Tensor::of<std::uint64_t>(Shape{2}, {63, UINT64_MAX})},
       .want = {Tensor::of<std::uint64_t>(Shape{2}, {1, 0})}},
      {.op = "Invert", .inputs = {f32({1}, {1})}, .error = "f32"},
  };
  for (const char* op : {"BitwiseAnd", "BitwiseOr", "BitwiseXor", "LeftShift", "RightShift"}) {
    rows.push_back({.op = op, .inputs = {any({2}), any({2})}, .error = "f64"});
    rows.push_back({.op = op, .inputs = {i32({2}, {1, 2}), i32({3}, {1, 2, 3})}, .error = "[3]"});
    rows.push_back({.op = op, .inputs = {i64({0, 2}, {}), i64({2}, {1, 2})}});
  }
  return rows;
});

const AddCases gammas([] {
  const double pi = std::numbers::pi, log2 = std::numbers::ln2;
  const Tensor x = f64({8}, {0.3, 1, 2.5, 9.5, 40, -0.5, -3.3, -20.7});
  Cases rows{
      {.op = "Lgamma", .inputs = {x}, .differentiate = {0}},
      {.op = "Lgamma",
       .inputs = {f64({5}, {1, 5, 0.5, -1, HUGE_VAL})},
       .want = {f64({5}, {0, std::log(24.0), std::log(pi) / 2, HUGE_VAL, HUGE_VAL})}},
      {.op = "Digamma", .inputs = {x}, .differentiate = {0}},
      {.op = "Digamma",
       .inputs = {f64({7}, {1, 2, 0.5, 0.0, -0.0, -2, HUGE_VAL})},
       .want = {f64({7}, {-kEuler, 1 - kEuler, -kEuler - 2 * log2, -HUGE_VAL, HUGE_VAL,
                          std::nan(""), HUGE_VAL})}},
      {.op = "Digamma", .inputs = {f32({1}, {1})}, .want = {f32({1}, {float(-kEuler)})}},
      {.op = "Polygamma",
       .inputs = {f64({5}, {1, 0.5, -0.5, 0, HUGE_VAL})},
       .attrs = {{"n", 1}},
       .want = {f64({5}, {pi * pi / 6, pi * pi / 2, pi * pi / 2 + 4, HUGE_VAL, 0})}},
      {.op = "Polygamma",
       .inputs = {f64({2}, {1, 0.5})},
       .attrs = {{"n", 2}},
       .want = {f64({2}, {-2.4041138063191885707, -16.8287966442343199956})}},
      {.op = "Polygamma",
       .inputs = {f64({1}, {2})},
       .attrs = {{"n", 0}},
       .want = {f64({1}, {1 - kEuler})}},
      {.op = "Polygamma", .inputs = {any({1}, 1, 2)}, .attrs = {{"n", -1}}, .error = "n is -1"},
      {.op = "Polygamma", .inputs = {any({1}, 1, 2)}, .attrs = {{"n", 101}}, .error = "n is 101"},
  };
  for (int n : {0, 1, 2, 3})
    rows.push_back({.op = "Polygamma",
                    .inputs = {f64({5}, {1.3, 2.5, 9.5, 40, -0.5})},
                    .attrs = {{"n", n}},
                    .differentiate = {0}});
  return rows;
});

const AddCases reversals([] {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "ReverseSequence",
       .inputs = {x, i64({2}, {2, 3})},
       .differentiate = {0},
       .want = {f64({2, 3}, {2, 1, 3, 6, 5, 4})}},
      {.op = "ReverseSequence",
       .inputs = {x, i32({3}, {0, 1, 2})},
       .attrs = {{"axis", 0}, {"batch_axis", -1}},
       .differentiate = {0},
       .want = {f64({2, 3}, {1, 2, 6, 4, 5, 3})}},
      {.op = "ReverseSequence",
       .inputs = {any({2, 3, 2, 4}), i64({4}, {0, 1, 2, 3})},
       .attrs = {{"axis", 1}, {"batch_axis", 3}},
       .differentiate = {0}},
      {.op = "ReverseSequence",
       .inputs = {any({2, 3, 400}), i64({2}, {3, 2})},
       .attrs = {{"axis", 1}}},
      {.op = "ReverseSequence",
       .inputs = {strings({1, 2}, {"a", "b"}), i64({1}, {2})},
       .want = {strings({1, 2}, {"b", "a"})}},
      {.op = "ReverseSequence", .inputs = {any({0, 3}), i64({0}, {})}},
      {.op = "ReverseSequence", .inputs = {any({2, 0}), i64({2}, {0, 0})}},
      {.op = "ReverseSequence", .inputs = {x, i64({2}, {4, 0})}, .error = "lengths[0] = 4"},
      {.op = "ReverseSequence", .inputs = {x, i64({2}, {0, -1})}, .error = "lengths[1] = -1"},
      {.op = "ReverseSequence", .inputs = {x, i64({3}, {0, 0, 0})}, .error = "lengths [3]"},
      {.op = "ReverseSequence",
       .inputs = {x, i64({2}, {0, 0})},
       .attrs = {{"axis", 0}},
       .error = "both 0"},
      {.op = "ReverseSequence",
       .inputs = {x, i64({2}, {0, 0})},
       .attrs = {{"axis", 2}},
       .error = "axis 2 is outside"},
  };
});

}  // namespace
}  // namespace troupe::test
