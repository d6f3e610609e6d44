// Rows of the conformance test: slices sorted into parts, and parts put together.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

const AddCases sorted_into_parts([] {
  const Tensor x = f64({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  return Cases{
      {.op = "DynamicPartition",
       .inputs = {x, i64({4}, {1, 0, 1, 1})},
       .attrs = {{"N", std::int64_t{3}}},
       .differentiate = {0},
       .want = {f64({1, 2}, {3, 4}), f64({3, 2}, {1, 2, 5, 6, 7, 8}), f64({0, 2}, {})}},
      {.op = "DynamicPartition",
       .inputs = {x, i32({4, 2}, {0, 1, 1, 0, 0, 0, 1, 1})},
       .attrs = {{"N", std::int64_t{2}}},
       .differentiate = {0},
       .want = {f64({4}, {1, 4, 5, 6}), f64({4}, {2, 3, 7, 8})}},
      {.op = "DynamicPartition",
       .inputs = {f64({}, {7}), i64({}, {1})},
       .attrs = {{"N", std::int64_t{2}}},
       .differentiate = {0},
       .want = {f64({0}, {}), f64({1}, {7})}},
      {.op = "DynamicPartition",
       .inputs = {any({3, 2, 2}), i64({3}, {0, 1, 0})},
       .attrs = {{"N", std::int64_t{2}}},
       .differentiate = {0}},
      {.op = "DynamicPartition",
       .inputs = {any({0, 2}), i64({0}, {})},
       .attrs = {{"N", std::int64_t{2}}},
       .want = {f64({0, 2}, {}), f64({0, 2}, {})}},
      {.op = "DynamicPartition",
       .inputs = {any({2, 0}), i64({2}, {1, 1})},
       .attrs = {{"N", std::int64_t{2}}},
       .want = {f64({0, 0}, {}), f64({2, 0}, {})}},
      {.op = "DynamicPartition",
       .inputs = {strings({3}, {"a", "b", "c"}), i64({3}, {1, 0, 1})},
       .attrs = {{"N", std::int64_t{2}}},
       .want = {strings({1}, {"b"}), strings({2}, {"a", "c"})}},
      {.op = "DynamicPartition",
       .inputs = {x, i64({4}, {0, 1, 2, 0})},
       .attrs = {{"N", std::int64_t{2}}},
       .error = "partitions[2] = 2 is outside [0, 2)"},
      {.op = "DynamicPartition",
       .inputs = {x, i32({4}, {0, 1, -1, 0})},
       .attrs = {{"N", std::int64_t{2}}},
       .error = "partitions[2] = -1 is outside [0, 2)"},
      {.op = "DynamicPartition",
       .inputs = {x, i64({3}, {0, 1, 0})},
       .attrs = {{"N", std::int64_t{2}}},
       .error = "partitions [3] are not the first dimensions of data [4,2]"},
      {.op = "DynamicPartition",
       .inputs = {f64({2}, {1, 2}), i64({2, 1}, {0, 1})},
       .attrs = {{"N", std::int64_t{2}}},
       .error = "not the first dimensions"},
  };
});

const AddCases put_together([] {
  return Cases{
      {.op = "DynamicStitch",
       .inputs = {i64({2}, {2, 0}), i64({1}, {1}), f64({2, 2}, {1, 2, 3, 4}), f64({1, 2}, {5, 6})},
       .differentiate = {2, 3},
       .want = {f64({3, 2}, {3, 4, 5, 6, 1, 2})}},
      // The last of those with one index stays; nobody names 0 and 2.
      {.op = "DynamicStitch",
       .inputs = {i32({2}, {1, 3}), i32({2}, {3, 1}), f64({2}, {1, 2}), f64({2}, {4, 8})},
       .differentiate = {2, 3},
       .want = {f64({4}, {0, 8, 0, 4})}},
      {.op = "DynamicStitch",
       .inputs = {i64({3}, {1, 1, 1}), f64({3}, {1, 2, 4})},
       .differentiate = {1},
       .want = {f64({2}, {0, 4})}},
      // Indices of several dimensions, and of none.
      {.op = "DynamicStitch",
       .inputs = {i64({}, {1}), i64({2, 1}, {2, 0}), f64({2}, {1, 2}),
                  f64({2, 1, 2}, {3, 4, 5, 6})},
       .differentiate = {2, 3},
       .want = {f64({3, 2}, {5, 6, 1, 2, 3, 4})}},
      {.op = "DynamicStitch", .inputs = {i64({0}, {}), any({0, 3})}, .want = {f64({0, 3}, {})}},
      {.op = "DynamicStitch",
       .inputs = {i64({2}, {2, 0}), strings({2}, {"a", "b"})},
       .want = {strings({3}, {"b", "", "a"})}},
      {.op = "DynamicStitch",
       .inputs = {i64({1}, {-1}), any({1})},
       .error = "element 0 of indices 0 is -1"},
      {.op = "DynamicStitch",
       .inputs = {i64({1}, {0}), i64({1}, {std::numeric_limits<std::int64_t>::max()}), any({1}),
                  any({1})},
       .error = "element 0 of indices 1"},
      {.op = "DynamicStitch",
       .inputs = {i64({1}, {std::int64_t{1} << 60}), any({1})},
       .error = "1152921504606846977"},
      {.op = "DynamicStitch",
       .inputs = {i64({1}, {0}), i64({1}, {1}), any({1, 2}), any({1, 3})},
       .error = "slices of data are [2] and [3]"},
      {.op = "DynamicStitch",
       .inputs = {i64({2}, {0, 1}), any({3})},
       .error = "indices [2] are not the first dimensions of data [3]"},
  };
});

const AddCases parts_back([] {
  return Cases{
      {.op = "DynamicStitchGrad",
       .inputs = {f64({4}, {1, 2, 3, 4}), i64({2}, {1, 3}), i64({2}, {3, 1})},
       .differentiate = {0},
       .want = {f64({2}, {0, 0}), f64({2}, {4, 2})}},
      {.op = "DynamicStitchGrad",
       .inputs = {any({3, 2}), i32({2, 1}, {2, 0})},
       .differentiate = {0}},
      {.op = "DynamicStitchGrad",
       .inputs = {any({3}), i64({1}, {1})},
       .error = "dy is [3] beside indices of 2 places"},
      {.op = "DynamicStitchGrad", .inputs = {any({}), i64({1}, {0})}, .error = "[]"},
      {.op = "DynamicStitchGrad", .inputs = {any({1}), i64({1}, {-1})}, .error = "is -1"},
  };
});

const AddCases rows_of_parts([] {
  const auto of = [](std::int64_t rows, std::int64_t shards, const char* how) {
    return AttrMap{{"rows", rows}, {"shards", shards}, {"how", std::string(how)}};
  };
  const Tensor all = i64({7}, {0, 1, 2, 3, 4, 5, 6});
  return Cases{
      {.op = "PartitionRows",
       .inputs = {all},
       .attrs = of(7, 3, "mod"),
       .want = {i64({7}, {0, 1, 2, 0, 1, 2, 0}), i64({7}, {0, 0, 0, 1, 1, 1, 2})}},
      {.op = "PartitionRows",
       .inputs = {all},
       .attrs = of(7, 3, "div"),
       .want = {i64({7}, {0, 0, 0, 1, 1, 2, 2}), i64({7}, {0, 1, 2, 0, 1, 0, 1})}},
      {.op = "PartitionRows",
       .inputs = {i32({2, 1}, {5, 2})},
       .attrs = of(6, 6, "div"),
       .want = {i32({2, 1}, {5, 2}), i32({2, 1}, {0, 0})}},
      {.op = "PartitionRows",
       .inputs = {i64({0}, {})},
       .attrs = of(2, 1, "mod"),
       .want = {i64({0}, {}), i64({0}, {})}},
      {.op = "PartitionRows",
       .inputs = {i64({2}, {1, 7})},
       .attrs = of(7, 3, "mod"),
       .error = "indices[1] = 7 is outside [0, 7)"},
      {.op = "PartitionRows",
       .inputs = {i32({1}, {-1})},
       .attrs = of(7, 3, "div"),
       .error = "indices[0] = -1 is outside [0, 7)"},
      {.op = "PartitionRows", .inputs = {all}, .attrs = of(2, 3, "mod"), .error = "has no 3 parts"},
      {.op = "PartitionRows", .inputs = {all}, .attrs = of(7, 0, "mod"), .error = "has no 0 parts"},
      {.op = "PartitionRows", .inputs = {all}, .attrs = of(-1, -2, "div"), .error = "parts"},
      {.op = "PartitionRows", .inputs = {all}, .attrs = of(7, 3, "hash"), .error = "hash"},
  };
});

}  // namespace
}  // namespace troupe::test
