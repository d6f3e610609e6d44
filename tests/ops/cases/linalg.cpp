// Rows of the conformance test: linear algebra on batches of matrices.
#include <cmath>
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kMatrixNan = std::numeric_limits<double>::quiet_NaN();

// Square matrices well away from singular ones: random elements, and more on the diagonal.
Tensor regular(const Shape& shape, double more = 2) {
  Tensor t = any(shape);
  const std::int64_t n = shape.dim(shape.rank() - 1);
  for (std::int64_t i = 0; i < t.elements(); ++i)
    if (i % (n * n) % (n + 1) == 0) t.mutable_data<double>()[i] += more * (1 + 0.3 * double(i % 7));
  return t;
}
Tensor nan_matrix() { return f64({2, 2}, {1, kMatrixNan, 0, 1}); }
Tensor all_nan(const Shape& shape) {
  Tensor t = Tensor::make(DType::f64, shape).value();
  for (std::int64_t i = 0; i < t.elements(); ++i) t.mutable_data<double>()[i] = kMatrixNan;
  return t;
}

const AddCases diagonals([] {
  return Cases{
      {.op = "MatrixDiag",
       .inputs = {f64({2, 2}, {1, 2, 3, 4})},
       .differentiate = {0},
       .want = {f64({2, 2, 2}, {1, 0, 0, 2, 3, 0, 0, 4})}},
      {.op = "MatrixDiag",
       .inputs = {bools({2}, {true, true})},
       .want = {bools({2, 2}, {true, false, false, true})}},
      {.op = "MatrixDiag", .inputs = {any({3, 0})}},
      {.op = "MatrixDiag", .inputs = {any({90, 91})}},
      {.op = "MatrixDiag", .inputs = {f64({}, {1})}, .error = "rank"},
      {.op = "MatrixDiagPart",
       .inputs = {f64({2, 3}, {1, 2, 3, 4, 5, 6})},
       .differentiate = {0},
       .want = {f64({2}, {1, 5})}},
      {.op = "MatrixDiagPart", .inputs = {any({2, 3, 2})}, .differentiate = {0}},
      {.op = "MatrixDiagPart", .inputs = {i32({2, 1, 1}, {7, 8})}, .want = {i32({2, 1}, {7, 8})}},
      {.op = "MatrixDiagPart", .inputs = {any({0, 3})}, .want = {f64({0}, {})}},
      {.op = "MatrixDiagPart", .inputs = {any({3})}, .error = "rank"},
      {.op = "MatrixDiagPartGrad", .inputs = {any({2, 2}), any({2, 3, 2})}, .differentiate = {0}},
      {.op = "MatrixDiagPartGrad", .inputs = {any({2}), any({3, 3})}, .error = "[2]"},
      {.op = "MatrixTranspose",
       .inputs = {f64({1, 2, 3}, {1, 2, 3, 4, 5, 6})},
       .differentiate = {0},
       .want = {f64({1, 3, 2}, {1, 4, 2, 5, 3, 6})}},
      {.op = "MatrixTranspose",
       .inputs = {strings({1, 2}, {"a", "b"})},
       .want = {strings({2, 1}, {"a", "b"})}},
      {.op = "MatrixTranspose", .inputs = {any({3})}, .error = "rank"},
  };
});

const AddCases inverses([] {
  Cases rows{
      {.op = "MatrixInverse",
       .inputs = {f64({2, 2}, {4, 7, 2, 6})},
       .differentiate = {0},
       .want = {f64({2, 2}, {0.6, -0.7, -0.2, 0.4})}},
      {.op = "MatrixInverse",
       .inputs = {f32({2, 2}, {0, 2, 1, 0})},
       .want = {f32({2, 2}, {0, 1, 0.5, 0})}},
      {.op = "MatrixInverse", .inputs = {regular({2, 3, 3})}, .differentiate = {0}},
      {.op = "MatrixInverse", .inputs = {regular({2, 70, 70}, 9)}},
      {.op = "MatrixInverse",
       .inputs = {f64({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 4})},
       .error = "matrix 1 of the batch is singular"},
      {.op = "MatrixDeterminant",
       .inputs = {f64({2, 2, 2}, {1, 2, 3, 4, 0, 1, 1, 0})},
       .differentiate = {0},
       .want = {f64({2}, {-2, -1})}},
      {.op = "MatrixDeterminant", .inputs = {regular({3, 3})}, .differentiate = {0}},
      {.op = "MatrixDeterminant", .inputs = {f64({2, 2}, {1, 2, 2, 4})}, .want = {f64({}, {0})}},
      {.op = "MatrixDeterminant", .inputs = {any({2, 0, 0})}, .want = {f64({2}, {1, 1})}},
      {.op = "MatrixDeterminant", .inputs = {nan_matrix()}, .want = {all_nan({})}},
      {.op = "LogMatrixDeterminant",
       .inputs = {f64({2, 2}, {0, 2, 3, 0})},
       .differentiate = {0},
       .want = {f64({}, {-1}), f64({}, {std::log(6.0)})}},
      {.op = "LogMatrixDeterminant", .inputs = {regular({2, 3, 3})}, .differentiate = {0}},
      {.op = "LogMatrixDeterminant",
       .inputs = {f64({2, 2}, {1, 2, 2, 4})},
       .want = {f64({}, {0}), f64({}, {-HUGE_VAL})}},
      {.op = "LogMatrixDeterminant",
       .inputs = {f64({2, 2}, {1e-200, 0, 0, -1e-200})},
       .want = {f64({}, {-1}), f64({}, {2 * std::log(1e-200)})}},
      {.op = "LogMatrixDeterminant", .inputs = {any({0, 0})}, .want = {f64({}, {1}), f64({}, {0})}},
      {.op = "Cholesky",
       .inputs = {f64({2, 2}, {4, 2, 2, 10})},
       .differentiate = {0},
       .want = {f64({2, 2}, {2, 0, 1, 3})}},
      {.op = "Cholesky", .inputs = {regular({2, 3, 3}, 3)}, .differentiate = {0}},
      {.op = "Cholesky", .inputs = {regular({2, 70, 70}, 40)}},
      {.op = "Cholesky",
       .inputs = {f64({2, 2, 2}, {1, 0, 0, 1, 1, 2, 2, 1})},
       .error = "matrix 1 of the batch is not positive definite"},
      {.op = "Cholesky", .inputs = {f64({1, 1}, {0})}, .error = "the matrix is not positive"},
  };
  for (const char* op : {"MatrixInverse", "MatrixDeterminant", "LogMatrixDeterminant", "Cholesky",
                         "SelfAdjointEig"}) {
    rows.push_back({.op = op, .inputs = {any({2, 3})}, .error = "square"});
    rows.push_back({.op = op, .inputs = {any({3})}, .error = "rank"});
    rows.push_back({.op = op, .inputs = {i32({1, 1}, {1})}, .error = "i32"});
    rows.push_back({.op = op, .inputs = {any({0, 3, 3})}});
    rows.push_back({.op = op, .inputs = {any({2, 0, 0})}});
  }
  for (const char* op : {"MatrixInverse", "Cholesky"})
    rows.push_back({.op = op, .inputs = {nan_matrix()}, .want = {all_nan({2, 2})}});
  return rows;
});

const AddCases solvers([] {
  Cases rows;
  for (bool adjoint : {false, true}) {
    const AttrMap how{{"adjoint", adjoint}};
    rows.push_back({.op = "MatrixSolve",
                    .inputs = {f64({2, 2}, {1, 2, 3, 4}), f64({2, 1}, {5, 6})},
                    .attrs = how,
                    .differentiate = {0, 1},
                    .want = {adjoint ? f64({2, 1}, {-1, 2}) : f64({2, 1}, {-4, 4.5})}});
    rows.push_back({.op = "MatrixSolve",
                    .inputs = {regular({2, 3, 3}), any({2, 3, 3})},
                    .attrs = how,
                    .differentiate = {0, 1}});
    rows.push_back(
        {.op = "MatrixSolve", .inputs = {regular({2, 70, 70}, 9), any({2, 70, 3})}, .attrs = how});
    for (bool lower : {false, true}) {
      AttrMap attrs = how;
      attrs.emplace("lower", lower);
      rows.push_back({.op = "MatrixTriangularSolve",
                      .inputs = {f64({2, 2}, {2, 1, 3, 4}), f64({2, 1}, {4, 8})},
                      .attrs = attrs,
                      .differentiate = {0, 1},
                      .want = {lower != adjoint ? f64({2, 1}, {2, lower ? 0.5 : 1.5})
                                                : f64({2, 1}, {lower ? -1.0 : 1.0, 2})}});
      rows.push_back({.op = "MatrixTriangularSolve",
                      .inputs = {regular({2, 3, 3}), any({2, 3, 3})},
                      .attrs = attrs,
                      .differentiate = {0, 1}});
      rows.push_back({.op = "MatrixTriangularSolve",
                      .inputs = {regular({70, 70}, 9), any({70, 3})},
                      .attrs = attrs});
    }
  }
  for (const char* op : {"MatrixSolve", "MatrixTriangularSolve"}) {
    rows.push_back({.op = op, .inputs = {any({2, 3}), any({2, 1})}, .error = "square"});
    rows.push_back({.op = op, .inputs = {any({2, 2}), any({3, 1})}, .error = "do not fit"});
    rows.push_back({.op = op, .inputs = {any({4, 2, 2}), any({3, 2, 1})}, .error = "do not fit"});
    rows.push_back({.op = op, .inputs = {any({2, 2}), any({2})}, .error = "rank"});
    rows.push_back({.op = op,
                    .inputs = {f64({2, 2}, {0, 0, 0, 1}), any({2, 1})},
                    .error = "the matrix is singular"});
    rows.push_back({.op = op, .inputs = {any({0, 3, 3}), any({0, 3, 2})}});
    rows.push_back({.op = op, .inputs = {any({0, 0}), any({0, 2})}});
    rows.push_back({.op = op, .inputs = {regular({3, 3}), any({3, 0})}});
  }
  rows.push_back(
      {.op = "MatrixSolve", .inputs = {nan_matrix(), any({2, 1})}, .want = {all_nan({2, 1})}});
  // What is on the other side of the diagonal is not read.
  rows.push_back({.op = "MatrixTriangularSolve",
                  .inputs = {nan_matrix(), f64({2, 1}, {3, 4})},
                  .want = {f64({2, 1}, {3, 4})}});
  return rows;
});

const AddCases least_squares([] {
  Cases rows{
      {.op = "MatrixSolveLs",
       .inputs = {f64({3, 2}, {1, 0, 1, 1, 1, 2}), f64({3, 1}, {6, 0, 0})},
       .differentiate = {0, 1},
       .want = {f64({2, 1}, {5, -3})}},
      {.op = "MatrixSolveLs",
       .inputs = {f64({1, 2}, {3, 4}), f64({1, 1}, {5})},
       .differentiate = {0, 1},
       .want = {f64({2, 1}, {0.6, 0.8})}},
      {.op = "MatrixSolveLs",
       .inputs = {f64({1, 1}, {2}), f64({1, 1}, {3})},
       .attrs = {{"l2_regularizer", 2.0}},
       .differentiate = {0, 1},
       .want = {f64({1, 1}, {1})}},
      {.op = "MatrixSolveLs",
       .inputs = {f64({2, 2}, {1, 1, 1, 1}), f64({2, 1}, {1, 1})},
       .error = "has not full rank"},
      {.op = "MatrixSolveLs",
       .inputs = {f64({2, 2}, {1, 1, 1, 1}), f64({2, 1}, {1, 1})},
       .attrs = {{"l2_regularizer", 1.0}},
       .want = {f64({2, 1}, {0.4, 0.4})}},
      {.op = "MatrixSolveLs",
       .inputs = {any({2, 2}), any({2, 1})},
       .attrs = {{"l2_regularizer", -1.0}},
       .error = "l2_regularizer"},
      {.op = "MatrixSolveLs",
       .inputs = {any({2, 2}), any({2, 1})},
       .attrs = {{"l2_regularizer", kMatrixNan}},
       .error = "l2_regularizer"},
      {.op = "MatrixSolveLs", .inputs = {any({3, 2}), any({2, 1})}, .error = "do not fit"},
      {.op = "MatrixSolveLs", .inputs = {any({2}), any({2, 1})}, .error = "rank"},
      {.op = "MatrixSolveLs", .inputs = {any({0, 3, 2}), any({0, 3, 1})}},
      {.op = "MatrixSolveLs", .inputs = {any({0, 2}), any({0, 1})}, .want = {f64({2, 1}, {0, 0})}},
      {.op = "MatrixSolveLs", .inputs = {any({3, 0}), any({3, 2})}},
      {.op = "MatrixSolveLs", .inputs = {nan_matrix(), any({2, 3})}, .want = {all_nan({2, 3})}},
  };
  for (double l2 : {0.0, 0.5})
    for (const Shape& shape : {Shape{2, 4, 2}, Shape{2, 2, 4}, Shape{2, 3, 3}})
      rows.push_back({.op = "MatrixSolveLs",
                      .inputs = {regular(shape), any({2, shape.dim(1), 3})},
                      .attrs = {{"l2_regularizer", l2}},
                      .differentiate = {0, 1}});
  return rows;
});

const AddCases decompositions([] {
  Cases rows{
      {.op = "Qr",
       .inputs = {f64({2, 2}, {3, 1, -4, 2})},
       .differentiate = {0},
       .want = {f64({2, 2}, {0.6, 0.8, -0.8, 0.6}), f64({2, 2}, {5, -1, 0, 2})}},
      {.op = "Qr", .inputs = {regular({2, 4, 3})}, .differentiate = {0}},
      {.op = "Qr", .inputs = {any({3, 5})}},
      {.op = "Qr", .inputs = {any({5, 3})}, .attrs = {{"full_matrices", true}}},
      {.op = "Qr", .inputs = {any({2, 3, 5})}, .attrs = {{"full_matrices", true}}},
      {.op = "Qr",
       .inputs = {f64({2, 2}, {0, 0, 0, 0})},
       .want = {f64({2, 2}, {1, 0, 0, 1}), f64({2, 2}, {0, 0, 0, 0})}},
      {.op = "Qr", .inputs = {any({3})}, .error = "rank"},
      {.op = "Svd",
       .inputs = {f64({2, 2}, {0, 2, -3, 0})},
       .differentiate = {0},
       .want = {f64({2}, {3, 2}), f64({2, 2}, {0, 1, 1, 0}), f64({2, 2}, {-1, 0, 0, 1})}},
      {.op = "Svd",
       .inputs = {f64({2, 2}, {0, 0, 0, 0})},
       .want = {f64({2}, {0, 0}), f64({2, 2}, {1, 0, 0, 1}), f64({2, 2}, {1, 0, 0, 1})}},
      {.op = "Svd", .inputs = {regular({2, 4, 3})}, .differentiate = {0}},
      {.op = "Svd", .inputs = {regular({3, 4})}, .differentiate = {0}},
      {.op = "Svd", .inputs = {regular({3, 3})}, .differentiate = {0}},
      {.op = "Svd", .inputs = {any({3})}, .error = "rank"},
      {.op = "SelfAdjointEig",
       .inputs = {f64({2, 2}, {2, 1, 1, 2})},
       .differentiate = {0},
       .want = {f64({2}, {1, 3}), f64({2, 2}, {M_SQRT1_2, M_SQRT1_2, -M_SQRT1_2, M_SQRT1_2})}},
      {.op = "SelfAdjointEig",
       .inputs = {f64({2, 2}, {5, 0, 0, -1})},
       .want = {f64({2}, {-1, 5}), f64({2, 2}, {0, 1, 1, 0})}},
      {.op = "SelfAdjointEig", .inputs = {regular({2, 3, 3})}, .differentiate = {0}},
      {.op = "SelfAdjointEig", .inputs = {nan_matrix()}, .want = {all_nan({2}), all_nan({2, 2})}},
  };
  for (const char* op : {"Qr", "Svd"}) {
    rows.push_back({.op = op, .inputs = {i32({1, 1}, {1})}, .error = "i32"});
    for (const Shape& shape : {Shape{0, 3, 2}, Shape{2, 0, 3}, Shape{2, 3, 0}, Shape{2, 0, 0}})
      rows.push_back({.op = op, .inputs = {any(shape)}});
    rows.push_back(
        {.op = op, .inputs = {nan_matrix()}, .want = {all_nan({op[0] == 'Q' ? 2 : 2, 2})}});
  }
  rows.back().want = {all_nan({2}), all_nan({2, 2}), all_nan({2, 2})};
  return rows;
});

}  // namespace
}  // namespace troupe::test
