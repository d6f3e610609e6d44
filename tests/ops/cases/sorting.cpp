// Rows of the conformance test: what puts elements in order.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kSortInf = std::numeric_limits<double>::infinity();
constexpr double kSortNan = std::numeric_limits<double>::quiet_NaN();

const AddCases sorts([] {
  const Tensor x = f64({2, 3}, {3, 1, 2, -1, 5, 0});
  const Tensor odd = f64({6}, {kSortNan, 1, -kSortInf, kSortInf, 0.0, -0.0});
  Cases rows{
      {.op = "Sort",
       .inputs = {x},
       .differentiate = {0},
       .want = {f64({2, 3}, {1, 2, 3, -1, 0, 5}), i64({2, 3}, {1, 2, 0, 0, 2, 1})}},
      {.op = "Sort",
       .inputs = {x},
       .attrs = {{"axis", 0}, {"descending", true}},
       .differentiate = {0},
       .want = {f64({2, 3}, {3, 5, 2, -1, 1, 0}), i64({2, 3}, {0, 1, 0, 1, 0, 1})}},
      {.op = "Sort", .inputs = {any({3, 4, 2})}, .attrs = {{"axis", 1}}, .differentiate = {0}},
      {.op = "Sort",
       .inputs = {odd},
       .want = {f64({6}, {-kSortInf, 0.0, -0.0, 1, kSortInf, kSortNan}),
                i64({6}, {2, 4, 5, 1, 3, 0})}},
      {.op = "Sort",
       .inputs = {odd},
       .attrs = {{"descending", true}},
       .want = {f64({6}, {kSortNan, kSortInf, 1, 0.0, -0.0, -kSortInf}),
                i64({6}, {0, 3, 1, 4, 5, 2})}},
      {.op = "Sort", .inputs = {any({70'001})}},
      {.op = "Sort", .inputs = {any({700, 101})}, .attrs = {{"axis", 0}}},
      {.op = "Sort", .inputs = {f64({0}, {})}, .want = {f64({0}, {}), i64({0}, {})}},
      {.op = "Sort", .inputs = {any({3, 0})}, .attrs = {{"axis", 0}}},
      {.op = "Sort",
       .inputs = {i64({3}, {INT64_MAX, INT64_MIN, 0})},
       .want = {i64({3}, {INT64_MIN, 0, INT64_MAX}), i64({3}, {1, 2, 0})}},
      {.op = "Sort",
       .inputs = {Tensor::of<std::uint64_t>(Shape{3}, {UINT64_MAX, 0, UINT64_MAX - 1})},
       .want = {Tensor::of<std::uint64_t>(Shape{3}, {0, UINT64_MAX - 1, UINT64_MAX}),
                i64({3}, {1, 2, 0})}},
      {.op = "Sort",
       .inputs = {halves<half>({3}, {2, -1, 0.5})},
       .want = {halves<half>({3}, {-1, 0.5, 2}), i64({3}, {1, 2, 0})}},
      {.op = "Sort",
       .inputs = {halves<bfloat16>({3}, {2, -1, 0.5})},
       .want = {halves<bfloat16>({3}, {-1, 0.5, 2}), i64({3}, {1, 2, 0})}},
      {.op = "Sort", .inputs = {x}, .attrs = {{"axis", 2}}, .error = "axis 2 is outside"},
      {.op = "Sort", .inputs = {f64({}, {1})}, .error = "axis -1 is outside"},
      {.op = "Sort", .inputs = {strings({1}, {"a"})}, .error = "string"},
      {.op = "ArgSort", .inputs = {x}, .want = {i64({2, 3}, {1, 2, 0, 0, 2, 1})}},
      {.op = "ArgSort",
       .inputs = {i32({5}, {1, 0, 1, 0, 1})},
       .attrs = {{"descending", true}},
       .want = {i64({5}, {0, 2, 4, 1, 3})}},
      {.op = "ArgSort", .inputs = {bools({3}, {true, false, true})}, .want = {i64({3}, {1, 0, 2})}},
      {.op = "ArgSort", .inputs = {x}, .attrs = {{"axis", -3}}, .error = "axis -3 is outside"},
      {.op = "TopK",
       .inputs = {x},
       .attrs = {{"k", 2}},
       .differentiate = {0},
       .want = {f64({2, 2}, {3, 2, 5, 0}), i64({2, 2}, {0, 2, 1, 2})}},
      {.op = "TopK", .inputs = {any({2, 2, 5})}, .attrs = {{"k", 3}}, .differentiate = {0}},
      {.op = "TopK",
       .inputs = {odd},
       .attrs = {{"k", 5}},
       .want = {f64({5}, {kSortNan, kSortInf, 1, 0.0, -0.0}), i64({5}, {0, 3, 1, 4, 5})}},
      {.op = "TopK",
       .inputs = {i32({5}, {7, 7, INT32_MIN, 7, INT32_MAX})},
       .attrs = {{"k", 3}},
       .want = {i32({3}, {INT32_MAX, 7, 7}), i64({3}, {4, 0, 1})}},
      {.op = "TopK",
       .inputs = {x},
       .attrs = {{"k", 0}},
       .want = {f64({2, 0}, {}), i64({2, 0}, {})}},
      {.op = "TopK", .inputs = {any({0, 4})}, .attrs = {{"k", 4}}},
      {.op = "TopK", .inputs = {any({300, 301})}, .attrs = {{"k", 7}}},
      {.op = "TopK", .inputs = {x}, .attrs = {{"k", 4}}, .error = "k is 4, but the last dimension"},
      {.op = "TopK", .inputs = {x}, .attrs = {{"k", -1}}, .error = "k is -1"},
      {.op = "TopK", .inputs = {f64({}, {1})}, .attrs = {{"k", 0}}, .error = "rank 1 or more"},
  };
  return rows;
});

const AddCases alongs([] {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "TakeAlong",
       .inputs = {x, i64({2, 2}, {2, 0, 1, 1})},
       .differentiate = {0},
       .want = {f64({2, 2}, {3, 1, 5, 5})}},
      {.op = "TakeAlong",
       .inputs = {x, i32({1, 3}, {1, 0, 1})},
       .attrs = {{"axis", 0}},
       .differentiate = {0},
       .want = {f64({1, 3}, {4, 2, 6})}},
      {.op = "TakeAlong",
       .inputs = {strings({2}, {"a", "b"}), i64({3}, {1, 1, 0})},
       .want = {strings({3}, {"b", "b", "a"})}},
      {.op = "TakeAlong", .inputs = {any({2, 0}), i64({2, 0}, {})}, .want = {f64({2, 0}, {})}},
      {.op = "TakeAlong",
       .inputs = {x, i64({2, 1}, {0, 3})},
       .error = "indices[1] = 3 is outside [0, 3)"},
      {.op = "TakeAlong", .inputs = {x, i64({2, 1}, {-1, 0})}, .error = "indices[0] = -1"},
      {.op = "TakeAlong", .inputs = {any({2, 0}), i64({2, 1}, {0, 0})}, .error = "outside [0, 0)"},
      {.op = "TakeAlong", .inputs = {x, i64({3, 1}, {0, 0, 0})}, .error = "but for dimension 1"},
      {.op = "TakeAlong", .inputs = {x, i64({2}, {0, 0})}, .error = "but for dimension 1"},
      {.op = "TakeAlong", .inputs = {x, x}, .error = "f64"},
      {.op = "ScatterAlong",
       .inputs = {f64({2, 2}, {1, 2, 3, 4}), i64({2, 2}, {2, 0, 1, 1}), i64({2}, {2, 3})},
       .differentiate = {0},
       .want = {f64({2, 3}, {2, 0, 1, 0, 7, 0})}},
      {.op = "ScatterAlong",
       .inputs = {any({2, 3}), i64({2, 3}, {3, 0, 3, 0, 0, 3}), i64({2}, {4, 3})},
       .attrs = {{"axis", 0}},
       .differentiate = {0}},
      {.op = "ScatterAlong",
       .inputs = {halves<bfloat16>({3}, {256, 1, 1}), i64({3}, {0, 0, 0}), i64({1}, {1})},
       .want = {halves<bfloat16>({1}, {258})}},
      {.op = "ScatterAlong",
       .inputs = {any({2}), i64({2}, {0, 2}), i64({1}, {2})},
       .error = "indices[1] = 2 is outside [0, 2)"},
      {.op = "ScatterAlong",
       .inputs = {any({3}), i64({2}, {0, 1}), i64({1}, {2})},
       .error = "dy is [3]"},
  };
});

const AddCases tops([] {
  const Tensor p = f32({3, 3}, {1, 3, 3, 5, 4, 6, 0, float(kSortInf), 1});
  return Cases{
      {.op = "InTopK",
       .inputs = {p, i64({3}, {1, 1, 0})},
       .attrs = {{"k", 2}},
       .want = {bools({3}, {true, false, false})}},
      {.op = "InTopK",
       .inputs = {p, i32({3}, {2, 2, 1})},
       .attrs = {{"k", 1}},
       .want = {bools({3}, {true, true, false})}},
      {.op = "InTopK",
       .inputs = {p, i64({3}, {1, 2, 2})},
       .attrs = {{"k", 0}},
       .want = {bools({3}, {false, false, false})}},
      {.op = "InTopK", .inputs = {any({0, 4}), i64({0}, {})}, .attrs = {{"k", 1}}},
      {.op = "InTopK",
       .inputs = {halves<half>({1, 2}, {1, 2}), i64({1}, {0})},
       .attrs = {{"k", 2}},
       .want = {bools({1}, {true})}},
      {.op = "InTopK",
       .inputs = {p, i64({3}, {0, 3, 0})},
       .attrs = {{"k", 1}},
       .error = "indices[1] = 3 is outside [0, 3)"},
      {.op = "InTopK", .inputs = {p, i64({2}, {0, 0})}, .attrs = {{"k", 1}}, .error = "[batch"},
      {.op = "InTopK",
       .inputs = {p, i64({3}, {0, 0, 0})},
       .attrs = {{"k", -1}},
       .error = "k is -1"},
  };
});

}  // namespace
}  // namespace troupe::test
