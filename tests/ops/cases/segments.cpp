// Rows of the conformance test: rows by segment.
#include <limits>

#include "core/rounding.hpp"
#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kFoldInf = std::numeric_limits<double>::infinity();
constexpr double kFoldNan = std::numeric_limits<double>::quiet_NaN();

const AddCases sorted_segments([] {
  Cases rows;
  const Tensor ids = i64({5}, {0, 0, 2, 2, 2}), none = i64({0}, {});
  for (const char* op : {"SegmentSum", "SegmentMean", "SegmentMax", "SegmentMin", "SegmentProd"}) {
    rows.push_back({.op = op, .inputs = {any({5, 2}), ids}, .differentiate = {0}});
    rows.push_back({.op = op, .inputs = {any({4}), i32({4}, {0, 1, 1, 3})}, .differentiate = {0}});
    rows.push_back({.op = op, .inputs = {any({5, 2, 2}), ids}, .differentiate = {0}});
    rows.push_back({.op = op, .inputs = {any({5, 301}), ids}});
    rows.push_back({.op = op, .inputs = {any({0, 2}), none}, .want = {f64({0, 2}, {})}});
    rows.push_back({.op = op, .inputs = {any({5, 0}), ids}, .want = {f64({3, 0}, {})}});
    rows.push_back({.op = op,
                    .inputs = {any({3}), i64({3}, {0, 2, 1})},
                    .error = "segment_ids[2] = 1 is below 2 before it"});
    rows.push_back({.op = op,
                    .inputs = {any({2}), i64({2}, {-1, 0})},
                    .error = "segment_ids[0] = -1 is negative"});
    rows.push_back({.op = op,
                    .inputs = {any({1}), i64({1}, {INT64_MAX})},
                    .error = "segment_ids[0] = 9223372036854775807 is too large"});
    rows.push_back({.op = op, .inputs = {any({1, 4}), i64({1}, {INT64_MAX - 1})}, .error = "2^63"});
    rows.push_back({.op = op, .inputs = {any({3}), i64({2}, {0, 1})}, .error = "first dimensions"});
    rows.push_back(
        {.op = op, .inputs = {f64({}, {1}), i64({1}, {0})}, .error = "first dimensions"});
    rows.push_back({.op = op, .inputs = {any({1, 1}), i64({1, 1}, {0})}, .error = "rank 1"});
    rows.push_back({.op = op, .inputs = {bools({1}, {true}), i64({1}, {0})}, .error = "bool"});
  }
  return rows;
});

const AddCases unsorted_segments([] {
  Cases rows;
  const Tensor ids = i64({5}, {2, 0, 2, 0, 2}), four = i64({}, {4});
  for (const char* op :
       {"UnsortedSegmentMean", "UnsortedSegmentMax", "UnsortedSegmentMin", "UnsortedSegmentProd"}) {
    // Without a segment without rows: a finite difference is lost beside the largest number.
    rows.push_back({.op = op,
                    .inputs = {any({5, 2}), i64({5}, {2, 0, 2, 1, 2}), i64({}, {3})},
                    .differentiate = {0}});
    rows.push_back({.op = op, .inputs = {any({5, 2}), ids, four}});
    rows.push_back({.op = op,
                    .inputs = {any({2, 2, 2}), i32({2, 2}, {1, 0, 1, 1}), i64({}, {2})},
                    .differentiate = {0}});
    rows.push_back(
        {.op = op, .inputs = {any({2}), i32({}, {0}), i64({}, {1})}, .differentiate = {0}});
    rows.push_back({.op = op, .inputs = {any({5, 301}), ids, four}});
    rows.push_back({.op = op, .inputs = {any({0, 2}), i64({0}, {}), i64({}, {2})}});
    rows.push_back({.op = op, .inputs = {any({5, 0}), ids, four}, .want = {f64({4, 0}, {})}});
    rows.push_back({.op = op,
                    .inputs = {any({5}), ids, i64({}, {2})},
                    .error = "indices[0] = 2 is outside [0, 2)"});
    rows.push_back({.op = op,
                    .inputs = {any({1}), i64({1}, {-1}), i64({}, {2})},
                    .error = "indices[0] = -1 is outside [0, 2)"});
    rows.push_back({.op = op, .inputs = {any({5}), ids, i64({}, {-1})}, .error = "negative"});
    rows.push_back(
        {.op = op, .inputs = {any({4}), ids, four}, .error = "must be the first dimensions"});
  }
  return rows;
});

const AddCases segment_values([] {
  const Tensor x = f64({4}, {3, -1, 4, 2}), ids = i64({4}, {0, 0, 2, 2}), n = i64({}, {3});
  const Tensor zeros = f64({6}, {0, 2, 0, 0, 3, 5}), groups = i64({6}, {0, 0, 1, 1, 1, 2});
  const Tensor mixed = i64({6}, {1, 0, 1, 0, 1, 0}), two = i64({}, {2});
  const Tensor odd = f64({4}, {1, kFoldNan, -kFoldInf, kFoldInf});
  Tensor small = Tensor::make(DType::bf16, Shape{3}).value();
  for (int i = 0; i < 3; ++i)
    small.mutable_data<bfloat16>()[i] = rounded<bfloat16>(i == 0 ? 256.0 : 1.0);
  Tensor small_sum = Tensor::make(DType::bf16, Shape{1}).value();
  small_sum.mutable_data<bfloat16>()[0] = rounded<bfloat16>(258.0);
  Tensor lowest = Tensor::make(DType::f16, Shape{1}).value();
  lowest.mutable_data<half>()[0] = rounded<half>(-65504.0);
  const double most = std::numeric_limits<double>::max();
  return Cases{
      {.op = "SegmentSum", .inputs = {x, ids}, .want = {f64({3}, {2, 0, 6})}},
      {.op = "SegmentSum", .inputs = {small, i64({3}, {0, 0, 0})}, .want = {small_sum}},
      {.op = "SegmentSum",
       .inputs = {i32({2}, {INT32_MAX, 1}), i64({2}, {0, 0})},
       .want = {i32({1}, {INT32_MIN})}},
      {.op = "SegmentMean", .inputs = {x, ids}, .want = {f64({3}, {1, 0, 3})}},
      {.op = "SegmentMax", .inputs = {x, ids}, .want = {f64({3}, {3, 0, 4})}},
      {.op = "SegmentMax", .inputs = {odd, ids}, .want = {f64({3}, {kFoldNan, 0, kFoldInf})}},
      {.op = "SegmentMin", .inputs = {x, ids}, .want = {f64({3}, {-1, 0, 2})}},
      {.op = "SegmentMin",
       .inputs = {i64({2}, {INT64_MAX, INT64_MIN}), i32({2}, {0, 0})},
       .want = {i64({1}, {INT64_MIN})}},
      {.op = "SegmentProd", .inputs = {x, ids}, .want = {f64({3}, {-3, 1, 8})}},
      // One zero, two of them, none.
      {.op = "SegmentProd",
       .inputs = {zeros, groups},
       .differentiate = {0},
       .want = {f64({3}, {0, 0, 5})}},
      {.op = "UnsortedSegmentProd",
       .inputs = {zeros, mixed, two},
       .differentiate = {0},
       .want = {f64({2}, {0, 0})}},
      {.op = "UnsortedSegmentProd", .inputs = {x, ids, n}, .want = {f64({3}, {-3, 1, 8})}},
      {.op = "UnsortedSegmentMean", .inputs = {x, ids, n}, .want = {f64({3}, {1, 0, 3})}},
      {.op = "UnsortedSegmentMax", .inputs = {x, ids, n}, .want = {f64({3}, {3, -most, 4})}},
      {.op = "UnsortedSegmentMin", .inputs = {x, ids, n}, .want = {f64({3}, {-1, most, 2})}},
      {.op = "UnsortedSegmentMax",
       .inputs = {i32({1}, {5}), i64({1}, {1}), two},
       .want = {i32({2}, {INT32_MIN, 5})}},
      {.op = "UnsortedSegmentMax",
       .inputs = {Tensor::make(DType::f16, Shape{0}).value(), i64({0}, {}), i64({}, {1})},
       .want = {lowest}},
  };
});

}  // namespace
}  // namespace troupe::test
