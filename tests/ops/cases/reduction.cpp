// Reductions, broadcasts and their way back.

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

void reduction(Cases& rows, const std::string& op) {
  const Shape cube{2, 3, 4};
  for (auto axes : {ints({}), ints({0}), ints({1}), ints({-1}), ints({0, 1}), ints({1, 2}),
                    ints({0, 2}), ints({2, 0, 1})})
    for (bool keep : {false, true})
      rows.push_back({.op = op,
                      .inputs = {any(cube, 0.5, 1.5)},
                      .attrs = {{"axes", axes}, {"keep_dims", keep}},
                      .differentiate = {0}});
  // More than a leaf and a chunk, in rows, in columns, and tangled.
  rows.push_back({.op = op, .inputs = {any({100'003}, 0.999, 1.001)}});
  rows.push_back(
      {.op = op, .inputs = {any({3, 9'000}, 0.999, 1.001)}, .attrs = {{"axes", ints({1})}}});
  rows.push_back(
      {.op = op, .inputs = {any({9'000, 11}, 0.999, 1.001)}, .attrs = {{"axes", ints({0})}}});
  rows.push_back(
      {.op = op, .inputs = {any({60, 5, 70}, 0.999, 1.001)}, .attrs = {{"axes", ints({0, 2})}}});
  rows.push_back({.op = op, .inputs = {any({0, 3})}, .attrs = {{"axes", ints({1})}}});
  for (auto axes : {ints({3}), ints({-4}), ints({1, 1}), ints({0, -3})})
    rows.push_back({.op = op, .inputs = {any(cube)}, .attrs = {{"axes", axes}}, .error = "axis"});
}

const AddCases reductions([] {
  Cases rows;
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min"}) reduction(rows, op);
  return rows;
});

const AddCases values([] {
  Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "Sum", .inputs = {x}, .want = {f64({}, {21})}},
      {.op = "Sum", .inputs = {x}, .attrs = {{"axes", ints({0})}}, .want = {f64({3}, {5, 7, 9})}},
      {.op = "Sum",
       .inputs = {x},
       .attrs = {{"axes", ints({1})}, {"keep_dims", true}},
       .want = {f64({2, 1}, {6, 15})}},
      {.op = "Sum", .inputs = {f64({0}, {})}, .want = {f64({}, {0})}},
      {.op = "Sum", .inputs = {i32({2}, {INT32_MAX, 1})}, .want = {i32({}, {INT32_MIN})}},
      {.op = "Mean", .inputs = {x}, .attrs = {{"axes", ints({-1})}}, .want = {f64({2}, {2, 5})}},
      {.op = "Mean", .inputs = {f64({0}, {})}, .want = {f64({}, {kNan})}},
      {.op = "Prod",
       .inputs = {x},
       .attrs = {{"axes", ints({0})}},
       .want = {f64({3}, {4, 10, 18})}},
      {.op = "Prod", .inputs = {f64({0}, {})}, .want = {f64({}, {1})}},
      // one zero, two zeros
      {.op = "Prod",
       .inputs = {f64({2, 3}, {2, 0, 3, 0, 5, 0})},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0},
       .want = {f64({2}, {0, 0})}},
      {.op = "ProdGrad",
       .inputs = {f64({2}, {1, 1}), f64({2, 3}, {2, 0, 3, 0, 5, 0})},
       .attrs = {{"axes", ints({1})}},
       .want = {f64({2, 3}, {0, 6, 0, 0, 0, 0})}},
      {.op = "ProdGrad",
       .inputs = {any({2, 1}), any({2, 3})},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0, 1}},
      {.op = "ProdGrad", .inputs = {f64({2}, {1, 1}), any({2, 3})}, .error = "dy is [2]"},
      // Along one tangent, then along two: x has a zero, two, three.
      {.op = "ProdGradAlong",
       .inputs = {f64({2}, {1, 1}), f64({2, 3}, {2, 0, 3, 0, 5, 0}),
                  f64({2, 3}, {1, 1, 1, 1, 2, 3})},
       .attrs = {{"axes", ints({1})}},
       .differentiate = {0, 1, 2},
       .want = {f64({2, 3}, {3, 5, 2, 15, 0, 5})}},
      {.op = "ProdGradAlong",
       .inputs = {f64({}, {2}), f64({3}, {0, 0, 0}), f64({3}, {1, 2, 3}), f64({3}, {4, 5, 6})},
       .differentiate = {0, 1, 2, 3},
       .want = {f64({3}, {54, 36, 26})}},
      {.op = "ProdGradAlong",
       .inputs = {any({4, 1}), any({4, 2, 3}), any({4, 2, 3})},
       .attrs = {{"axes", ints({1, 2})}},
       .differentiate = {0, 1, 2}},
      {.op = "ProdGradAlong", .inputs = {any({}), any({3}), any({2})}, .error = "tangents[0]"},
      {.op = "ProdGradAlong",
       .inputs = {any({}), any({1}), any({1}), any({1}), any({1}), any({1}), any({1}), any({1}),
                  any({1}), any({1}), any({1})},
       .error = "9 tangents"},
      {.op = "Max", .inputs = {x}, .attrs = {{"axes", ints({1})}}, .want = {f64({2}, {3, 6})}},
      {.op = "Max", .inputs = {f64({3}, {1, kNan, 2})}, .want = {f64({}, {kNan})}},
      {.op = "Max", .inputs = {f64({0}, {})}, .want = {f64({}, {-kInf})}},
      {.op = "Min", .inputs = {x}, .attrs = {{"axes", ints({0})}}, .want = {f64({3}, {1, 2, 3})}},
      {.op = "Min", .inputs = {i32({0}, {})}, .want = {i32({}, {INT32_MAX})}},
      {.op = "All",
       .inputs = {bools({2, 2}, {true, true, true, false})},
       .attrs = {{"axes", ints({1})}},
       .want = {bools({2}, {true, false})}},
      {.op = "Any",
       .inputs = {bools({2, 2}, {false, true, false, false})},
       .attrs = {{"axes", ints({1})}},
       .want = {bools({2}, {true, false})}},
      {.op = "All", .inputs = {bools({0}, {})}, .want = {bools({}, {true})}},
      {.op = "Any",
       .inputs = {bools({2, 2}, {false, true, false, false})},
       .attrs = {{"axes", ints({0})}},
       .want = {bools({2}, {false, true})}},
      {.op = "ArgMax", .inputs = {f64({2, 3}, {1, 5, 5, 9, kNan, 3})}, .want = {i64({2}, {1, 1})}},
      {.op = "ArgMax", .inputs = {x}, .attrs = {{"axis", 0}}, .want = {i64({3}, {1, 1, 1})}},
      {.op = "ArgMin", .inputs = {x}, .attrs = {{"axis", 1}}, .want = {i64({2}, {0, 0})}},
      {.op = "ArgMin", .inputs = {any({300, 200})}, .attrs = {{"axis", 0}}},
      {.op = "ArgMax", .inputs = {x}, .attrs = {{"axis", 2}}, .error = "axis"},
      {.op = "ArgMax", .inputs = {any({2, 0})}, .error = "no elements"},
      {.op = "ArgMax", .inputs = {f64({}, {1})}, .error = "axis"},
  };
});

const AddCases ways_back([] {
  return Cases{
      {.op = "Spread",
       .inputs = {any({3}), i64({2}, {2, 3})},
       .attrs = {{"axes", ints({0})}},
       .differentiate = {0}},
      {.op = "Spread",
       .inputs = {any({2, 1}), i64({2}, {2, 3})},
       .attrs = {{"axes", ints({1})}, {"mean", true}},
       .differentiate = {0}},
      {.op = "Spread",
       .inputs = {f64({}, {6}), i64({2}, {1, 3})},
       .attrs = {{"mean", true}},
       .want = {f64({1, 3}, {2, 2, 2})}},
      {.op = "Spread",
       .inputs = {any({4}), i64({2}, {2, 3})},
       .attrs = {{"axes", ints({0})}},
       .error = "dy is"},
      {.op = "BroadcastTo", .inputs = {any({2, 1}), i64({3}, {2, 2, 3})}, .differentiate = {0}},
      {.op = "BroadcastTo",
       .inputs = {strings({}, {"x"}), i64({1}, {2})},
       .want = {strings({2}, {"x", "x"})}},
      {.op = "BroadcastTo", .inputs = {any({2}), i64({1}, {3})}, .error = "broadcast"},
      {.op = "BroadcastTo", .inputs = {any({2, 2}), i64({1}, {2})}, .error = "broadcast"},
      {.op = "SumToShape",
       .inputs = {any({2, 3, 4})},
       .attrs = {{"shape", PartialShape{3, 1}}},
       .differentiate = {0}},
      {.op = "SumToShape",
       .inputs = {f64({2, 2}, {1, 2, 3, 4})},
       .attrs = {{"shape", PartialShape{2}}},
       .want = {f64({2}, {4, 6})}},
      {.op = "SumToShape",
       .inputs = {any({2, 3})},
       .attrs = {{"shape", PartialShape{2}}},
       .error = "cannot have shape"},
      {.op = "SumToShape",
       .inputs = {any({2, 3})},
       .attrs = {{"shape", PartialShape{-1}}},
       .error = "must be known"},
      {.op = "SumToShapeOf", .inputs = {any({2, 3, 4}), any({2, 1, 4})}, .differentiate = {0}},
      {.op = "SumToShapeOf", .inputs = {any({2, 3}), any({})}, .differentiate = {0}},
      {.op = "SumToShapeOf", .inputs = {any({3}), any({2, 3})}, .error = "cannot have shape"},
  };
});

}  // namespace
}  // namespace troupe::test
