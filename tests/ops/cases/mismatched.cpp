// Inputs that do not fit each other, which only a run may see.
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

using namespace troupe;
using namespace troupe::test;

namespace {

const AddCases mismatched_slopes([] {
  Cases rows;
  const Tensor dy = f64({2}, {1, 2});
  for (const char* op : {"EluGrad", "ErfGrad", "GeluGrad", "GeluTanhGrad", "ReciprocalGrad",
                         "Relu6Grad", "ReluGrad", "RsqrtGrad", "SeluGrad", "SigmoidGrad",
                         "SoftplusGrad", "SoftsignGrad", "SqrtGrad", "TanhGrad"}) {
    rows.push_back({.op = op, .inputs = {dy, any({3, 2})}, .error = "[3,2]"});
    rows.push_back({.op = op, .inputs = {any({2, 2}), any({1})}, .error = "[1]"});
  }
  // The others broadcast to the first.
  for (const char* op : {"LeakyReluGrad", "PowGradBase", "PowGradExponent"})
    for (const Tensor& larger : {any({3, 2}), any({1, 2})})
      rows.push_back({.op = op, .inputs = {dy, dy, larger}, .error = larger.shape().text()});
  rows.push_back({.op = "SigmoidGrad",
                  .inputs = {Tensor::zeros(DType::c128, {2}).value(), dy},
                  .error = "c128"});
  return rows;
});

// The gradient takes the permutation for one, also where the rank is not known before the run.
const AddCases refused_perms([] {
  const auto row = [](std::vector<std::int64_t> perm, const char* error) {
    return OpCase{.op = "Transpose",
                  .inputs = {any({2, 3})},
                  .attrs = {{"perm", std::move(perm)}},
                  .error = error};
  };
  return Cases{row({1, 3}, "axis 3 is outside"), row({0, -3}, "axis -3 is outside"),
               row({1, 1}, "dimension 1 twice"), row({1, std::int64_t{1} << 62}, "is outside")};
});

// Dimensions without elements that are together longer than any.
const AddCases too_long_together([] {
  const std::int64_t half = std::int64_t{1} << 62;
  const Tensor none = Tensor::zeros(DType::f64, {half, 0}).value();
  return Cases{{.op = "Concat", .inputs = {none, none}, .error = "too long"},
               {.op = "ConcatGrad",
                .inputs = {none, i64({2}, {half, 0}), i64({2}, {half, 0})},
                .error = "too long"}};
});

// Sums of integers wrap around.
const AddCases wrapping_sums([] {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return Cases{{.op = "ScatterNd",
                .inputs = {i64({2, 1}, {1, 1}), i64({2}, {kMost, 1}), i64({1}, {2})},
                .want = {i64({2}, {0, -kMost - 1})}}};
});

// Any number of matrices or rows may have no elements.
const AddCases many_without_elements([] {
  const std::int64_t many = std::int64_t{1} << 40;
  const auto none = [](const Shape& shape) { return Tensor::zeros(DType::f64, shape).value(); };
  return Cases{
      {.op = "MatrixDiag", .inputs = {none({many, 0})}, .want = {none({many, 0, 0})}},
      {.op = "MatrixDiagPart", .inputs = {none({many, 3, 0})}, .want = {none({many, 0})}},
      {.op = "Cholesky", .inputs = {none({many, 0, 0})}, .want = {none({many, 0, 0})}},
      {.op = "Svd",
       .inputs = {none({many, 3, 0})},
       .want = {none({many, 0}), none({many, 3, 0}), none({many, 0, 0})}},
      {.op = "MatrixSolve",
       .inputs = {none({many, 0, 0}), none({many, 0, 2})},
       .want = {none({many, 0, 2})}},
      {.op = "BatchMatMul",
       .inputs = {none({many, 0, 2}), none({many, 2, 0})},
       .want = {none({many, 0, 0})}},
      {.op = "Tile",
       .inputs = {none({3, 0})},
       .attrs = {{"multiples", ints({many, 1})}},
       .want = {none({3 * many, 0})}},
      {.op = "TileGrad",
       .inputs = {none({3 * many, 0}), i64({2}, {3, 0})},
       .attrs = {{"multiples", ints({many, 1})}},
       .want = {none({3, 0})}},
      {.op = "SearchSorted",
       .inputs = {none({0, many}), none({0, many})},
       .want = {Tensor::zeros(DType::i64, {0, many}).value()}},
      {.op = "ProdGrad",
       .inputs = {f64({}, {1}), none({many, 0})},
       .attrs = {{"axes", ints({0, 1})}},
       .want = {none({many, 0})}},
      {.op = "ProdGradAlong",
       .inputs = {f64({}, {1}), none({many, 0}), none({many, 0})},
       .attrs = {{"axes", ints({0, 1})}},
       .want = {none({many, 0})}},
      {.op = "LstmCellGrad",
       .inputs = {none({many, 0}), none({many, 0}), none({many, 0}), none({many, 0}),
                  none({many, 0})},
       .want = {none({many, 0}), none({many, 0})}},
      {.op = "ScatterAlong",
       .inputs = {none({3, 0, many}), Tensor::zeros(DType::i64, {3, 0, many}).value(),
                  i64({3}, {3, 0, many})},
       .attrs = {{"axis", 1}},
       .want = {none({3, 0, many})}},
  };
});

}  // namespace
