// Rows of the conformance test: sums and products of all elements so far, and moves along an axis.
#include <limits>

#include "core/rounding.hpp"
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kSumInf = std::numeric_limits<double>::infinity();
constexpr double kSumNan = std::numeric_limits<double>::quiet_NaN();

template <class T>
Tensor halves_of(std::initializer_list<double> v) {
  Tensor t = Tensor::make(dtype_of<T>, Shape{std::int64_t(v.size())}).value();
  std::int64_t i = 0;
  for (double x : v) t.mutable_data<T>()[i++] = rounded<T>(x);
  return t;
}

const AddCases cumulatives([] {
  Cases rows;
  const Tensor zeros = f64({2, 5}, {2, 0, 3, 0, 5, 1, 2, 0, 4, 3});
  for (const char* op : {"Cumsum", "Cumprod"})
    for (bool exclusive : {false, true})
      for (bool reverse : {false, true}) {
        const AttrMap how{{"exclusive", exclusive}, {"reverse", reverse}};
        for (int axis : {0, 1, -1}) {
          AttrMap attrs = how;
          attrs.emplace("axis", axis);
          rows.push_back({.op = op, .inputs = {zeros}, .attrs = attrs, .differentiate = {0}});
          rows.push_back(
              {.op = op, .inputs = {any({2, 3, 2})}, .attrs = attrs, .differentiate = {0}});
        }
        rows.push_back({.op = op, .inputs = {any({70'001}, 0.999, 1.001)}, .attrs = how});
        rows.push_back({.op = op, .inputs = {any({99, 701})}, .attrs = how});
        AttrMap rows_of = how;  // more of them than are walked together
        rows_of.emplace("axis", -1);
        rows.push_back({.op = op, .inputs = {any({19, 70}, 0.9, 1.1)}, .attrs = rows_of});
        rows.push_back(
            {.op = op, .inputs = {any({2, 11, 3})}, .attrs = rows_of, .differentiate = {0}});
        rows.push_back({.op = op, .inputs = {any({0, 3})}, .attrs = how});
        rows.push_back({.op = op, .inputs = {any({3, 0})}, .attrs = how});
      }
  for (const char* op : {"Cumsum", "Cumprod"}) {
    rows.push_back({.op = op, .inputs = {any({2})}, .attrs = {{"axis", 1}}, .error = "axis 1 is"});
    rows.push_back({.op = op, .inputs = {f64({}, {1})}, .error = "axis 0 is outside"});
    rows.push_back({.op = op, .inputs = {bools({1}, {true})}, .error = "bool"});
  }
  return rows;
});

const AddCases cumulative_values([] {
  const Tensor x = f64({4}, {1, 2, 3, 4});
  return Cases{
      {.op = "Cumsum", .inputs = {x}, .want = {f64({4}, {1, 3, 6, 10})}},
      {.op = "Cumsum",
       .inputs = {x},
       .attrs = {{"exclusive", true}, {"reverse", true}},
       .want = {f64({4}, {9, 7, 4, 0})}},
      {.op = "Cumsum",
       .inputs = {f64({4}, {1, kSumInf, 2, -kSumInf})},
       .want = {f64({4}, {1, kSumInf, kSumInf, kSumNan})}},
      {.op = "Cumsum",
       .inputs = {i32({2}, {INT32_MAX, 1})},
       .want = {i32({2}, {INT32_MAX, INT32_MIN})}},
      {.op = "Cumsum",
       .inputs = {halves_of<bfloat16>({256, 1, 1})},
       .want = {halves_of<bfloat16>({256, 256, 258})}},
      {.op = "Cumprod", .inputs = {x}, .want = {f64({4}, {1, 2, 6, 24})}},
      {.op = "Cumprod",
       .inputs = {x},
       .attrs = {{"exclusive", true}},
       .want = {f64({4}, {1, 1, 2, 6})}},
      {.op = "Cumprod",
       .inputs = {f64({3}, {kSumInf, 0, 2})},
       .want = {f64({3}, {kSumInf, kSumNan, kSumNan})}},
      {.op = "Cumprod",
       .inputs = {i64({3}, {INT64_MAX, 2, -1})},
       .want = {i64({3}, {INT64_MAX, -2, 2})}},
      {.op = "Cumprod",
       .inputs = {halves_of<half>({60000, 2, 0.25})},
       .want = {halves_of<half>({60000, kSumInf, 30000})}},
      {.op = "LinearRecurrence",
       .inputs = {f64({3}, {5, 2, 3}), f64({3}, {1, 1, 1})},
       .differentiate = {0, 1},
       .want = {f64({3}, {1, 3, 10})}},
      {.op = "LinearRecurrence",
       .inputs = {f64({3}, {5, 2, 3}), f64({3}, {1, 1, 1})},
       .attrs = {{"behind", true}},
       .differentiate = {0, 1},
       .want = {f64({3}, {1, 6, 13})}},
      {.op = "LinearRecurrence",
       .inputs = {f64({3}, {5, 2, 3}), f64({3}, {1, 1, 1})},
       .attrs = {{"reverse", true}},
       .differentiate = {0, 1},
       .want = {f64({3}, {16, 3, 1})}},
      {.op = "LinearRecurrence",
       .inputs = {any({2, 4, 2}), any({2, 4, 2})},
       .attrs = {{"axis", 1}, {"behind", true}, {"reverse", true}},
       .differentiate = {0, 1}},
      {.op = "LinearRecurrence",
       .inputs = {f64({3}, {1, 0, 1}), f64({3}, {kSumInf, 1, 2})},
       .want = {f64({3}, {kSumInf, 1, 3})}},
      {.op = "LinearRecurrence", .inputs = {any({0, 2}), any({0, 2})}},
      {.op = "LinearRecurrence", .inputs = {any({2}), any({3})}, .error = "[3]"},
      {.op = "LinearRecurrence", .inputs = {any({}), any({})}, .error = "axis 0 is outside"},
  };
});

const AddCases moves_along([] {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "Roll",
       .inputs = {x},
       .attrs = {{"shift", ints({1})}, {"axes", ints({1})}},
       .differentiate = {0},
       .want = {f64({2, 3}, {3, 1, 2, 6, 4, 5})}},
      {.op = "Roll",
       .inputs = {x},
       .attrs = {{"shift", ints({-1, 7, 4})}, {"axes", ints({0, -1, 1})}},
       .differentiate = {0},
       .want = {f64({2, 3}, {5, 6, 4, 2, 3, 1})}},
      {.op = "Roll",
       .inputs = {any({3, 4, 5})},
       .attrs = {{"shift", ints({INT64_MIN, INT64_MAX})}, {"axes", ints({0, 1})}},
       .differentiate = {0}},
      {.op = "Roll",
       .inputs = {strings({3}, {"a", "b", "c"})},
       .attrs = {{"shift", ints({1})}, {"axes", ints({0})}},
       .want = {strings({3}, {"c", "a", "b"})}},
      {.op = "Roll",
       .inputs = {f64({}, {5})},
       .attrs = {{"shift", ints({})}, {"axes", ints({})}},
       .want = {f64({}, {5})}},
      {.op = "Roll", .inputs = {any({0, 3})}, .attrs = {{"shift", ints({1})}, {"axes", ints({0})}}},
      {.op = "Roll",
       .inputs = {any({301, 203})},
       .attrs = {{"shift", ints({-5})}, {"axes", ints({1})}}},
      {.op = "Roll",
       .inputs = {x},
       .attrs = {{"shift", ints({1})}, {"axes", ints({2})}},
       .error = "axis 2 is outside"},
      {.op = "Roll",
       .inputs = {x},
       .attrs = {{"shift", ints({1, 2})}, {"axes", ints({0})}},
       .error = "2 shifts for 1 axes"},
      {.op = "Shift",
       .inputs = {x},
       .attrs = {{"by", 1}, {"axis", 1}},
       .differentiate = {0},
       .want = {f64({2, 3}, {0, 1, 2, 0, 4, 5})}},
      {.op = "Shift",
       .inputs = {x},
       .attrs = {{"by", -1}},
       .differentiate = {0},
       .want = {f64({2, 3}, {4, 5, 6, 0, 0, 0})}},
      {.op = "Shift",
       .inputs = {x},
       .attrs = {{"by", std::int64_t{INT64_MIN}}},
       .differentiate = {0},
       .want = {f64({2, 3}, {0, 0, 0, 0, 0, 0})}},
      {.op = "Shift", .inputs = {x}, .attrs = {{"by", std::int64_t{INT64_MAX}}, {"axis", -1}}},
      {.op = "Shift", .inputs = {any({2, 0})}, .attrs = {{"by", 1}}},
      {.op = "Shift", .inputs = {any({300, 401})}, .attrs = {{"by", -3}, {"axis", 1}}},
      {.op = "Shift",
       .inputs = {x},
       .attrs = {{"by", 1}, {"axis", 2}},
       .error = "axis 2 is outside"},
  };
});

}  // namespace
}  // namespace troupe::test
