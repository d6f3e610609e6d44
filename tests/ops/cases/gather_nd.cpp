// Rows of the conformance test: indices into several dimensions.
#include <limits>

#include "core/rounding.hpp"
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases slices_by_index([] {
  const Tensor x = f64({2, 3}, {1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "GatherNd",
       .inputs = {x, i64({3, 2}, {1, 2, 0, 0, 1, 2})},
       .differentiate = {0},
       .want = {f64({3}, {6, 1, 6})}},
      {.op = "GatherNd",
       .inputs = {x, i32({2, 1, 1}, {1, 0})},
       .differentiate = {0},
       .want = {f64({2, 1, 3}, {4, 5, 6, 1, 2, 3})}},
      {.op = "GatherNd",
       .inputs = {any({2, 3, 4}), i64({2, 2}, {1, 2, 0, 1})},
       .differentiate = {0}},
      // No parts: all of it, as often as there are indices.
      {.op = "GatherNd",
       .inputs = {f64({2}, {1, 2}), i64({2, 0}, {})},
       .differentiate = {0},
       .want = {f64({2, 2}, {1, 2, 1, 2})}},
      {.op = "GatherNd",
       .inputs = {f64({}, {7}), i64({1, 0}, {})},
       .differentiate = {0},
       .want = {f64({1}, {7})}},
      {.op = "GatherNd", .inputs = {x, i64({2}, {1, 1})}, .want = {f64({}, {5})}},
      {.op = "GatherNd", .inputs = {x, i64({0, 2}, {})}, .want = {f64({0}, {})}},
      {.op = "GatherNd", .inputs = {any({2, 0}), i64({1, 1}, {1})}, .want = {f64({1, 0}, {})}},
      // Any number of slices of nothing.
      {.op = "GatherNd",
       .inputs = {any({0}), i64({std::int64_t{1} << 50, 0}, {})},
       .want = {f64({std::int64_t{1} << 50, 0}, {})}},
      {.op = "GatherNd",
       .inputs = {any({std::int64_t{1} << 50, 0}), i64({std::int64_t{1} << 50, 0}, {})},
       .error = "has more than 2^63 - 1 elements"},
      {.op = "GatherNd",
       .inputs = {strings({2}, {"a", "b"}), i64({1, 1}, {1})},
       .want = {strings({1}, {"b"})}},
      {.op = "GatherNd",
       .inputs = {x, i64({2, 2}, {0, 0, 1, 3})},
       .error = "indices[1, 1] = 3 is outside [0, 3)"},
      {.op = "GatherNd",
       .inputs = {x, i64({1, 2}, {-1, 0})},
       .error = "indices[0, 0] = -1 is outside [0, 2)"},
      {.op = "GatherNd",
       .inputs = {any({2, 0}), i64({1, 2}, {1, 0})},
       .error = "indices[0, 1] = 0 is outside [0, 0)"},
      {.op = "GatherNd",
       .inputs = {any({0, 2}), i64({1, 1}, {0})},
       .error = "indices[0, 0] = 0 is outside [0, 0)"},
      {.op = "GatherNd", .inputs = {x, i64({1, 3}, {0, 0, 0})}, .error = "3 parts"},
      {.op = "GatherNd", .inputs = {x, i64({}, {0})}, .error = "rank 1 or more"},
  };
});

const AddCases slices_back([] {
  return Cases{
      {.op = "ScatterNd",
       .inputs = {i64({3, 2}, {1, 2, 0, 0, 1, 2}), f64({3}, {1, 2, 3}), i64({2}, {2, 3})},
       .differentiate = {1},
       .want = {f64({2, 3}, {2, 0, 0, 0, 0, 4})}},
      {.op = "ScatterNd",
       .inputs = {i32({2, 1}, {2, 2}), any({2, 3}), i64({2}, {4, 3})},
       .differentiate = {1}},
      {.op = "ScatterNd",
       .inputs = {i64({2, 0}, {}), f64({2, 2}, {1, 2, 3, 4}), i64({1}, {2})},
       .differentiate = {1},
       .want = {f64({2}, {4, 6})}},
      {.op = "ScatterNd",
       .inputs = {i64({2, 1}, {1, 1}), i32({2}, {INT32_MAX, 1}), i64({1}, {2})},
       .want = {i32({2}, {0, INT32_MIN})}},
      {.op = "ScatterNd",
       .inputs = {i64({0, 1}, {}), any({0, 2}), i64({2}, {3, 2})},
       .want = {f64({3, 2}, {0, 0, 0, 0, 0, 0})}},
      {.op = "ScatterNd",
       .inputs = {i64({1, 1}, {1}), any({1, 0}), i64({2}, {3, 0})},
       .want = {f64({3, 0}, {})}},
      {.op = "ScatterNd",
       .inputs = {i64({2, 1}, {0, 2}), any({2}), i64({1}, {2})},
       .error = "indices[1, 0] = 2 is outside [0, 2)"},
      {.op = "ScatterNd",
       .inputs = {i64({1, 1}, {0}), any({1}), i64({1}, {0})},
       .error = "indices[0, 0] = 0 is outside [0, 0)"},
      {.op = "ScatterNd",
       .inputs = {i64({2, 1}, {0, 1}), any({3}), i64({1}, {2})},
       .error = "updates are [3]"},
      {.op = "ScatterNd",
       .inputs = {i64({1, 1}, {0}), any({1}), i64({1}, {-1})},
       .error = "negative"},
      {.op = "ScatterNd",
       .inputs = {i64({1, 2}, {0, 0}), any({1}), i64({1}, {2})},
       .error = "2 parts"},
  };
});

const AddCases places([] {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Tensor half_ones = Tensor::make(DType::f16, Shape{2}).value();
  half_ones.mutable_data<half>()[0] = rounded<half>(0.0);
  half_ones.mutable_data<half>()[1] = rounded<half>(1.0);
  return Cases{
      {.op = "Where",
       .inputs = {bools({2, 2}, {true, false, true, true})},
       .want = {i64({3, 2}, {0, 0, 1, 0, 1, 1})}},
      {.op = "Where", .inputs = {f64({4}, {0, nan, -0.0, 1e-320})}, .want = {i64({2, 1}, {1, 3})}},
      {.op = "Where", .inputs = {half_ones}, .want = {i64({1, 1}, {1})}},
      {.op = "Where", .inputs = {i32({2}, {0, 0})}, .want = {i64({0, 1}, {})}},
      {.op = "Where", .inputs = {bools({}, {true})}, .want = {i64({1, 0}, {})}},
      {.op = "Where", .inputs = {bools({}, {false})}, .want = {i64({0, 0}, {})}},
      {.op = "Where", .inputs = {any({0, 3})}, .want = {i64({0, 2}, {})}},
      {.op = "Where", .inputs = {any({70'001})}},
      {.op = "Where", .inputs = {strings({1}, {"a"})}, .error = "string"},
  };
});

}  // namespace
}  // namespace troupe::test
