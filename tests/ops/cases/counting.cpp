// Rows of the conformance test: values once, values counted, values found; bands of matrices.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kFindInf = std::numeric_limits<double>::infinity();
constexpr double kFindNan = std::numeric_limits<double>::quiet_NaN();

// Right up to one behind the first block that is looked at.
Tensor late_indices() {
  Tensor t = Tensor::make(DType::i64, Shape{3000}).value();
  for (std::int64_t i = 0; i < 3000; ++i) t.mutable_data<std::int64_t>()[i] = i < 2500 ? 2 : 3;
  return t;
}

const AddCases counting([] {
  return Cases{
      {.op = "Unique",
       .inputs = {i64({5}, {7, 2, 7, INT64_MIN, 2})},
       .want = {i64({3}, {7, 2, INT64_MIN}), i64({5}, {0, 1, 0, 2, 1}), i64({3}, {2, 2, 1})}},
      {.op = "Unique",
       .inputs = {f64({6}, {kFindNan, -0.0, kFindInf, 0.0, kFindNan, -kFindInf})},
       .want = {f64({4}, {kFindNan, -0.0, kFindInf, -kFindInf}), i64({6}, {0, 1, 2, 1, 0, 3}),
                i64({4}, {2, 2, 1, 1})}},
      {.op = "Unique",
       .inputs = {strings({3}, {"b", "a", "b"})},
       .want = {strings({2}, {"b", "a"}), i64({3}, {0, 1, 0}), i64({2}, {2, 1})}},
      {.op = "Unique",
       .inputs = {bools({3}, {true, true, true})},
       .want = {bools({1}, {true}), i64({3}, {0, 0, 0}), i64({1}, {3})}},
      {.op = "Unique",
       .inputs = {i32({0}, {})},
       .want = {i32({0}, {}), i64({0}, {}), i64({0}, {})}},
      {.op = "Unique", .inputs = {any({7'001})}},
      {.op = "Unique", .inputs = {any({2, 2})}, .error = "rank 1"},
      {.op = "Unique", .inputs = {any({})}, .error = "rank 1"},
      {.op = "Bincount",
       .inputs = {i64({2, 2}, {1, 3, 1, 0})},
       .attrs = {{"size", 5}},
       .want = {i64({5}, {1, 2, 0, 1, 0})}},
      {.op = "Bincount", .inputs = {i32({}, {0})}, .attrs = {{"size", 1}}, .want = {i64({1}, {1})}},
      {.op = "Bincount", .inputs = {i32({0}, {})}, .attrs = {{"size", 0}}, .want = {i64({0}, {})}},
      {.op = "Bincount",
       .inputs = {i64({2}, {1, 3})},
       .attrs = {{"size", 3}},
       .error = "indices[1] = 3 is outside [0, 3)"},
      {.op = "Bincount",
       .inputs = {i64({1}, {-1})},
       .attrs = {{"size", 3}},
       .error = "indices[0] = -1"},
      {.op = "Bincount",
       .inputs = {late_indices()},
       .attrs = {{"size", 3}},
       .error = "indices[2500] = 3 is outside [0, 3)"},
      {.op = "Bincount", .inputs = {i64({1}, {0})}, .attrs = {{"size", -1}}, .error = "size is -1"},
      {.op = "Bincount", .inputs = {any({1})}, .attrs = {{"size", 1}}, .error = "f64"},
  };
});

const AddCases searching([] {
  const Tensor steps = f64({4}, {1, 2, 2, 5});
  const Tensor values = f64({6}, {0, 2, 5, 6, kFindNan, -kFindInf});
  return Cases{
      {.op = "SearchSorted", .inputs = {steps, values}, .want = {i64({6}, {0, 1, 3, 4, 4, 0})}},
      {.op = "SearchSorted",
       .inputs = {steps, values},
       .attrs = {{"right", true}},
       .want = {i64({6}, {0, 3, 4, 4, 4, 0})}},
      {.op = "SearchSorted", .inputs = {steps, f64({}, {2})}, .want = {i64({}, {1})}},
      {.op = "SearchSorted",
       .inputs = {f64({3}, {-0.0, 0.0, kFindNan}), f64({2}, {0, kFindNan})},
       .want = {i64({2}, {0, 2})}},
      {.op = "SearchSorted",
       .inputs = {i32({2, 2}, {1, 3, INT32_MIN, INT32_MAX}), i32({2, 1}, {2, 0})},
       .want = {i64({2, 1}, {1, 1})}},
      {.op = "SearchSorted",
       .inputs = {f64({0}, {}), values},
       .want = {i64({6}, {0, 0, 0, 0, 0, 0})}},
      {.op = "SearchSorted", .inputs = {any({0, 3}), any({0, 2})}, .want = {i64({0, 2}, {})}},
      {.op = "SearchSorted", .inputs = {steps, any({70'001}, 0, 6)}},
      {.op = "SearchSorted",
       .inputs = {f64({2}, {2, 1}), values},
       .error = "sequence[1] is below the element before it"},
      {.op = "SearchSorted", .inputs = {f64({}, {2}), values}, .error = "rank 1 or more"},
      {.op = "SearchSorted", .inputs = {any({2, 0}), any({3, 1})}, .error = "alike"},
  };
});

const AddCases bands([] {
  const Tensor x = f64({3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  return Cases{
      {.op = "MatrixBandPart",
       .inputs = {x},
       .attrs = {{"lower", -1}, {"upper", 0}},
       .differentiate = {0},
       .want = {f64({3, 3}, {1, 0, 0, 4, 5, 0, 7, 8, 9})}},
      {.op = "MatrixBandPart",
       .inputs = {x},
       .attrs = {{"lower", 0}, {"upper", -1}},
       .want = {f64({3, 3}, {1, 2, 3, 0, 5, 6, 0, 0, 9})}},
      {.op = "MatrixBandPart",
       .inputs = {x},
       .attrs = {{"lower", 0}, {"upper", 1}},
       .differentiate = {0},
       .want = {f64({3, 3}, {1, 2, 0, 0, 5, 6, 0, 0, 9})}},
      {.op = "MatrixBandPart",
       .inputs = {x},
       .attrs = {{"lower", std::int64_t{INT64_MAX}}, {"upper", std::int64_t{INT64_MAX}}},
       .want = {x}},
      {.op = "MatrixBandPart",
       .inputs = {f64({4, 2}, {kFindInf, kFindNan, 1, 2, 3, 4, 5, 6})},
       .attrs = {{"lower", 0}, {"upper", 0}},
       .want = {f64({4, 2}, {kFindInf, 0, 0, 2, 0, 0, 0, 0})}},
      {.op = "MatrixBandPart",
       .inputs = {any({2, 2, 5})},
       .attrs = {{"lower", 1}, {"upper", 2}},
       .differentiate = {0}},
      {.op = "MatrixBandPart",
       .inputs = {bools({2, 2}, {true, true, true, true})},
       .attrs = {{"lower", 0}, {"upper", 0}},
       .want = {bools({2, 2}, {true, false, false, true})}},
      {.op = "MatrixBandPart", .inputs = {any({0, 3})}, .attrs = {{"lower", 0}, {"upper", 0}}},
      {.op = "MatrixBandPart", .inputs = {any({3, 0})}, .attrs = {{"lower", 0}, {"upper", 0}}},
      {.op = "MatrixBandPart", .inputs = {any({400, 301})}, .attrs = {{"lower", 3}, {"upper", 0}}},
      {.op = "MatrixBandPart",
       .inputs = {any({3})},
       .attrs = {{"lower", 0}, {"upper", 0}},
       .error = "rank"},
  };
});

}  // namespace
}  // namespace troupe::test
