// Binary math with broadcasting, comparisons, logic, choice.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

// Shapes that meet in every way: equal, scalar, row, column, both stretched, several dimensions.
const std::vector<std::pair<Shape, Shape>> kMeetings = {
    {{2, 3}, {2, 3}},    {{}, {2, 3}},
    {{3}, {}},           {{2, 3}, {3}},
    {{2, 1}, {1, 3}},    {{2, 3}, {2, 1}},
    {{1}, {4}},          {{0, 3}, {1, 3}},
    {{2, 1, 3}, {4, 1}}, {{2, 2, 2, 2}, {2, 1, 2}}};

void binary(Cases& rows, const std::string& op, double low, double high, bool gradient = true) {
  for (auto& [a, b] : kMeetings) {
    OpCase row{.op = op, .inputs = {any(a, low, high), any(b, high, low)}};
    if (gradient && a.elements() != 0) row.differentiate = {0, 1};
    rows.push_back(row);
  }
  // Larger than a chunk, along rows that do not fit one.
  rows.push_back({.op = op, .inputs = {any({300, 257}, low, high), any({257}, low, high)}});
  rows.push_back({.op = op, .inputs = {any({2}), any({3})}, .error = "broadcast"});
}

const AddCases meetings([] {
  Cases rows;
  for (const char* op : {"Add", "Sub", "Mul", "SquaredDifference", "Maximum", "Minimum"})
    binary(rows, op, -2, 2);
  for (const char* op : {"Div", "Mod", "Pow"}) binary(rows, op, 0.5, 3);
  for (const char* op :
       {"FloorDiv", "Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual"})
    binary(rows, op, -2, 2, false);
  return rows;
});

const AddCases values([] {
  Tensor a = i32({4}, {7, -7, 7, -7}), b = i32({4}, {2, 2, -2, -2});
  Tensor x = f64({4}, {7, -7, 7, -7}), y = f64({4}, {2, 2, -2, -2});
  Tensor c = f64({3}, {1, 2, kNan}), d = f64({3}, {2, 2, 0});
  return Cases{
      {.op = "Add", .inputs = {f32({2}, {1, 2}), f32({}, {10})}, .want = {f32({2}, {11, 12})}},
      {.op = "Add",
       .inputs = {i32({1}, {INT32_MAX}), i32({1}, {1})},
       .want = {i32({1}, {INT32_MIN})}},
      {.op = "Sub",
       .inputs = {f64({2, 1}, {1, 2}), f64({2}, {10, 20})},
       .want = {f64({2, 2}, {-9, -19, -8, -18})}},
      {.op = "Mul", .inputs = {i64({2}, {3, -4}), i64({}, {5})}, .want = {i64({2}, {15, -20})}},
      {.op = "Div", .inputs = {a, b}, .want = {i32({4}, {3, -3, -3, 3})}},
      {.op = "Div",
       .inputs = {i32({1}, {INT32_MIN}), i32({1}, {-1})},
       .want = {i32({1}, {INT32_MIN})}},
      {.op = "FloorDiv", .inputs = {a, b}, .want = {i32({4}, {3, -4, -4, 3})}},
      {.op = "FloorDiv", .inputs = {x, y}, .want = {f64({4}, {3, -4, -4, 3})}},
      // 1 / 0.1 is rounded up to 10, and 0.1 is a little more than a tenth.
      {.op = "FloorDiv",
       .inputs = {f64({8}, {1, 0.3, -1, 6, 1, -1e-200, kInf, 1}),
                  f64({8}, {0.1, 0.1, 0.1, 0.1, -0.1, 1e200, 2, 0})},
       .want = {f64({8}, {9, 2, -10, 59, -10, -1, kInf, kInf})}},
      {.op = "FloorDiv",
       .inputs = {f64({7}, {-1, 1, 1, -1, 0, -0.0, kInf}),
                  f64({7}, {kInf, -kInf, kInf, -kInf, -kInf, kInf, -kInf})},
       .want = {f64({7}, {-1, -1, 0, 0, -0.0, -0.0, kNan})}},
      {.op = "FloorDiv",
       .inputs = {f32({2}, {-1, 5}), f32({2}, {float(kInf), -float(kInf)})},
       .want = {f32({2}, {-1, -1})}},
      {.op = "Mod", .inputs = {a, b}, .want = {i32({4}, {1, 1, -1, -1})}},
      {.op = "Mod", .inputs = {x, y}, .want = {f64({4}, {1, 1, -1, -1})}},
      {.op = "Pow",
       .inputs = {i32({3}, {2, -3, 5}), i32({3}, {10, 3, 0})},
       .want = {i32({3}, {1024, -27, 1})}},
      {.op = "Div", .inputs = {a, i32({4}, {1, 0, 1, 1})}, .error = "division by zero"},
      {.op = "Mod", .inputs = {a, i32({}, {0})}, .error = "division by zero"},
      {.op = "FloorDiv", .inputs = {a, i32({}, {0})}, .error = "division by zero"},
      {.op = "Pow", .inputs = {a, i32({}, {-1})}, .error = "negative power"},
      {.op = "Maximum", .inputs = {c, d}, .want = {f64({3}, {2, 2, kNan})}},
      {.op = "Minimum", .inputs = {d, c}, .want = {f64({3}, {1, 2, kNan})}},
      {.op = "Less", .inputs = {c, d}, .want = {bools({3}, {true, false, false})}},
      {.op = "GreaterEqual", .inputs = {c, d}, .want = {bools({3}, {false, true, false})}},
      {.op = "Equal", .inputs = {c, c}, .want = {bools({3}, {true, true, false})}},
      {.op = "NotEqual", .inputs = {c, c}, .want = {bools({3}, {false, false, true})}},
      {.op = "Equal",
       .inputs = {strings({2}, {"a", "b"}), strings({}, {"b"})},
       .want = {bools({2}, {false, true})}},
      {.op = "NotEqual",
       .inputs = {strings({2}, {"a", "b"}), strings({}, {"b"})},
       .want = {bools({2}, {true, false})}},
      {.op = "LogicalAnd",
       .inputs = {bools({2}, {true, false}), bools({}, {true})},
       .want = {bools({2}, {true, false})}},
      {.op = "LogicalOr",
       .inputs = {bools({2}, {true, false}), bools({2}, {false, false})},
       .want = {bools({2}, {true, false})}},
      {.op = "Add", .inputs = {f64({1}, {1}), f32({1}, {1})}, .error = "f32"},
      {.op = "Add", .inputs = {any({1, 1, 1, 1, 1, 1, 1, 2}), any({3})}, .error = "broadcast"},
  };
});

// Where the textbook formula gives NaN or counts twice.
const AddCases binary_slopes([] {
  return Cases{
      {.op = "PowGradBase",
       .inputs = {f64({3}, {1, 1, 2}), f64({3}, {0, 0, 3}), f64({3}, {0, 2, 2})},
       .want = {f64({3}, {0, 0, 12})}},
      {.op = "PowGradBase",
       .inputs = {any({2, 3}), any({3}, 0.5, 2), any({2, 1}, 1.5, 3)},
       .differentiate = {0, 1, 2}},
      {.op = "PowGradExponent",
       .inputs = {any({2, 3}), any({2, 3}), any({2, 1}, 0.5, 2)},
       .differentiate = {0, 1, 2}},
      {.op = "PowGradExponent",
       .inputs = {f64({2}, {1, 1}), f64({2}, {0, 1}), f64({2}, {0, M_E})},
       .want = {f64({2}, {0, 1})}},
  };
});

const AddCases choice([] {
  Tensor c = bools({3}, {true, false, true});
  return Cases{
      {.op = "Select",
       .inputs = {c, f64({3}, {1, 2, 3}), f64({3}, {4, 5, 6})},
       .differentiate = {1, 2},
       .want = {f64({3}, {1, 5, 3})}},
      {.op = "Select",
       .inputs = {bools({2, 1}, {true, false}), any({2, 3}), any({3})},
       .differentiate = {1, 2}},
      {.op = "Select",
       .inputs = {bools({}, {false}), any({2, 3}), any({})},
       .differentiate = {1, 2}},
      {.op = "Select",
       .inputs = {c, strings({}, {"yes"}), strings({}, {"no"})},
       .want = {strings({3}, {"yes", "no", "yes"})}},
      {.op = "Select", .inputs = {c, any({2}), any({2})}, .error = "broadcast"},
      {.op = "AddN", .inputs = {any({2, 3})}, .differentiate = {0}},
      {.op = "AddN", .inputs = {any({40'000}), any({40'000}), any({40'000})}},
      {.op = "AddN",
       .inputs = {f64({2}, {1, 2}), f64({2}, {10, 20}), f64({2}, {100, 200})},
       .differentiate = {0, 1, 2},
       .want = {f64({2}, {111, 222})}},
      {.op = "AddN", .inputs = {any({2}), any({3})}, .error = "[3]"},
  };
});

}  // namespace
}  // namespace troupe::test
