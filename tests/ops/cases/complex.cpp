// Complex numbers: arithmetic, functions, comparisons, parts, casts, sums, and their gradients.
#include <cmath>
#include <complex>
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

using Complex128 = std::complex<double>;
using Complex64 = std::complex<float>;
using namespace std::complex_literals;

constexpr double kComplexNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kEndless = std::numeric_limits<double>::infinity();

// c64 of a c128 tensor.
Tensor as_c64(const Tensor& x) {
  Tensor y = Tensor::make(DType::c64, x.shape()).value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    y.mutable_data<Complex64>()[i] = Complex64(x.data<Complex128>()[i]);
  return y;
}
template <class F>
Tensor of_each(const Tensor& x, F f) {
  Tensor y = x.clone().value();
  for (Complex128* z = y.mutable_data<Complex128>();
       z != y.mutable_data<Complex128>() + y.elements(); ++z)
    *z = f(*z);
  return y;
}

// y = f(x) with its gradients, on an empty tensor, larger than a chunk, and as c64.
void complex_function(Cases& rows, const std::string& op, Complex128 (*f)(Complex128),
                      double low = -1, double high = 1) {
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0, 4}, Shape{30'001}}) {
    const Tensor x = any_complex(shape, low, high), y = of_each(x, f);
    const bool few = shape.elements() < 10 && shape.elements() > 0;
    rows.push_back({.op = op,
                    .inputs = {x},
                    .differentiate = few ? std::vector<int>{0} : std::vector<int>{},
                    .want = {y}});
    const Tensor less = as_c64(x);
    Tensor wide = x.clone().value();
    for (std::int64_t i = 0; i < x.elements(); ++i)
      wide.mutable_data<Complex128>()[i] = f(Complex128(less.data<Complex64>()[i]));
    rows.push_back({.op = op, .inputs = {less}, .want = {as_c64(wide)}});
  }
}

const AddCases complex_functions([] {
  Cases rows;
  complex_function(rows, "Neg", [](Complex128 z) { return -z; });
  complex_function(rows, "Square", [](Complex128 z) { return z * z; });
  complex_function(
      rows, "Reciprocal", [](Complex128 z) { return 1.0 / z; }, 0.5, 2);
  complex_function(
      rows, "Sqrt", [](Complex128 z) { return std::sqrt(z); }, 0.1, 2);
  complex_function(
      rows, "Sqrt", [](Complex128 z) { return std::sqrt(z); }, -2, -0.1);
  complex_function(rows, "Exp", [](Complex128 z) { return std::exp(z); });
  complex_function(
      rows, "Log", [](Complex128 z) { return std::log(z); }, 0.5, 2);
  complex_function(
      rows, "Log", [](Complex128 z) { return std::log(z); }, -2, -0.5);
  complex_function(rows, "Sin", [](Complex128 z) { return std::sin(z); });
  complex_function(rows, "Cos", [](Complex128 z) { return std::cos(z); });
  complex_function(rows, "Tan", [](Complex128 z) { return std::tan(z); });
  complex_function(rows, "Sinh", [](Complex128 z) { return std::sinh(z); });
  complex_function(rows, "Cosh", [](Complex128 z) { return std::cosh(z); });
  complex_function(rows, "Tanh", [](Complex128 z) { return std::tanh(z); });
  complex_function(rows, "Conj", [](Complex128 z) { return std::conj(z); });
  return rows;
});

// Equal, scalar, row, column, both stretched.
const std::vector<std::pair<Shape, Shape>> kComplexMeetings = {
    {{2, 3}, {2, 3}}, {{}, {2, 3}}, {{3}, {}}, {{2, 3}, {3}}, {{2, 1}, {1, 3}}, {{0, 3}, {1, 3}}};

const AddCases complex_meetings([] {
  Cases rows;
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Equal", "NotEqual"}) {
    const bool flows = op != std::string("Equal") && op != std::string("NotEqual");
    for (auto& [a, b] : kComplexMeetings)
      rows.push_back({.op = op,
                      .inputs = {any_complex(a, 0.5, 2), any_complex(b, -2, -0.5)},
                      .differentiate = flows && a.elements() != 0 ? std::vector<int>{0, 1}
                                                                  : std::vector<int>{}});
    rows.push_back({.op = op, .inputs = {any_complex({300, 257}), any_complex({257})}});
    rows.push_back({.op = op, .inputs = {as_c64(any_complex({40})), as_c64(any_complex({40}))}});
    rows.push_back(
        {.op = op, .inputs = {any_complex({2}), any_complex({3})}, .error = "broadcast"});
    rows.push_back({.op = op, .inputs = {any_complex({2}), any({2})}, .error = "expected c128"});
  }
  for (const char* op : {"Less", "LessEqual", "Greater", "GreaterEqual", "Maximum", "Minimum"})
    rows.push_back(
        {.op = op, .inputs = {any_complex({2}), any_complex({2})}, .error = "a is c128"});
  return rows;
});

const AddCases complex_values([] {
  const Tensor a = c128({2}, {1.0 + 2i, -3.0}), b = c128({2}, {2.0 - 1i, 2i});
  return Cases{
      {.op = "Add", .inputs = {a, b}, .want = {c128({2}, {3.0 + 1i, -3.0 + 2i})}},
      {.op = "Sub", .inputs = {a, b}, .want = {c128({2}, {-1.0 + 3i, -3.0 - 2i})}},
      {.op = "Mul", .inputs = {a, b}, .want = {c128({2}, {4.0 + 3i, -6i})}},
      {.op = "Div", .inputs = {a, b}, .want = {c128({2}, {1i, 1.5i})}},
      {.op = "Equal", .inputs = {a, c128({}, {1.0 + 2i})}, .want = {bools({2}, {true, false})}},
      {.op = "NotEqual", .inputs = {a, c128({}, {1.0 - 2i})}, .want = {bools({2}, {true, true})}},
      {.op = "Equal",
       .inputs = {c128({2}, {{kComplexNan, 0}, {0, kComplexNan}}),
                  c128({2}, {{kComplexNan, 0}, {0, kComplexNan}})},
       .want = {bools({2}, {false, false})}},
      // Powers of 0, and to 0.
      {.op = "Pow",
       .inputs = {c128({5}, {0, 0, 0, 2i, {kComplexNan, 1}}), c128({5}, {0, 2.0 + 1i, -1, 2, 0})},
       .want = {c128({5}, {1, 0, {kComplexNan, kComplexNan}, -4, 1})}},
      {.op = "PowGradBase",
       .inputs = {any_complex({4}), any_complex({4}, 0.5, 1.5), any_complex({4}, 0.5, 2)},
       .differentiate = {0, 1, 2}},
      {.op = "PowGradBase",
       .inputs = {c128({1}, {1}), c128({1}, {0}), c128({1}, {0})},
       .want = {c128({1}, {0})}},
      {.op = "PowGradExponent",
       .inputs = {any_complex({4}), any_complex({4}), any_complex({4}, 0.5, 2)},
       .differentiate = {0, 1, 2}},
      {.op = "PowGradExponent",
       .inputs = {c128({1}, {1}), c128({1}, {0}), c128({1}, {0})},
       .want = {c128({1}, {0})}},
      {.op = "Sqrt", .inputs = {c128({2}, {-4, {-4, -0.0}})}, .want = {c128({2}, {2i, -2i})}},
      {.op = "Log",
       .inputs = {c128({2}, {0, -1})},
       .want = {c128({2}, {{-kEndless, 0}, {0, M_PI}})}},
      {.op = "SqrtGrad",
       .inputs = {any_complex({3}), any_complex({3}, 0.5, 2)},
       .differentiate = {0, 1}},
      {.op = "ReciprocalGrad",
       .inputs = {any_complex({3}), any_complex({3}, 0.5, 2)},
       .differentiate = {0, 1}},
      {.op = "TanhGrad", .inputs = {any_complex({3}), any_complex({3})}, .differentiate = {0, 1}},
      {.op = "AddN",
       .inputs = {any_complex({2, 3}), any_complex({2, 3}), any_complex({2, 3})},
       .differentiate = {0, 1, 2}},
      {.op = "AddN", .inputs = {a, b}, .want = {c128({2}, {3.0 + 1i, -3.0 + 2i})}},
      {.op = "ZerosLike", .inputs = {a}, .want = {c128({2}, {0, 0})}},
      {.op = "OnesLike", .inputs = {as_c64(a)}, .want = {c64({2}, {1, 1})}},
      {.op = "ZerosLike", .inputs = {any_complex({0, 2})}, .want = {c128({0, 2}, {})}},
  };
});

const AddCases complex_parts([] {
  Cases rows;
  for (auto& [a, b] : kComplexMeetings)
    rows.push_back(
        {.op = "Complex",
         .inputs = {any(a), any(b)},
         .differentiate = a.elements() != 0 ? std::vector<int>{0, 1} : std::vector<int>{}});
  rows.push_back({.op = "Complex",
                  .inputs = {f32({2}, {1, 2}), f32({}, {-1})},
                  .want = {c64({2}, {{1, -1}, {2, -1}})}});
  rows.push_back({.op = "Complex",
                  .inputs = {f64({2}, {kComplexNan, kEndless}), f64({2}, {kEndless, -0.0})},
                  .want = {c128({2}, {{kComplexNan, kEndless}, {kEndless, -0.0}})}});
  rows.push_back({.op = "Complex", .inputs = {any({2}), any({3})}, .error = "broadcast"});
  rows.push_back({.op = "Complex", .inputs = {i32({1}, {1}), i32({1}, {1})}, .error = "re is i32"});
  rows.push_back(
      {.op = "Complex", .inputs = {f32({1}, {1}), f64({1}, {1})}, .error = "expected f32"});
  for (const char* op : {"Real", "Imag", "Conj", "Angle", "ComplexAbs"}) {
    for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0, 4}, Shape{30'001}}) {
      const bool few = shape.elements() < 10 && shape.elements() > 0;
      for (double low : {0.25, -1.25})
        rows.push_back({.op = op,
                        .inputs = {any_complex(shape, low, low + 1)},
                        .differentiate = few ? std::vector<int>{0} : std::vector<int>{}});
      rows.push_back({.op = op, .inputs = {as_c64(any_complex(shape))}});
    }
    rows.push_back({.op = op, .inputs = {any({2})}, .error = "z is f64"});
  }
  const Tensor z = c128({3}, {3.0 + 4i, -2i, {-1, -0.0}});
  rows.push_back({.op = "Real", .inputs = {z}, .want = {f64({3}, {3, 0, -1})}});
  rows.push_back({.op = "Imag", .inputs = {z}, .want = {f64({3}, {4, -2, -0.0})}});
  rows.push_back({.op = "Conj", .inputs = {z}, .want = {c128({3}, {3.0 - 4i, 2i, -1})}});
  rows.push_back(
      {.op = "Angle", .inputs = {z}, .want = {f64({3}, {std::atan2(4, 3), -M_PI / 2, -M_PI})}});
  rows.push_back({.op = "ComplexAbs", .inputs = {z}, .want = {f64({3}, {5, 2, 1})}});
  // Neither the square of a part nor a part that is NaN beside inf decides.
  rows.push_back(
      {.op = "ComplexAbs",
       .inputs = {c128(
           {4}, {{3e200, 4e200}, {3e-200, 4e-200}, {kEndless, kComplexNan}, {kComplexNan, 1}})},
       .want = {f64({4}, {5e200, 5e-200, kEndless, kComplexNan})}});
  return rows;
});

const AddCases complex_casts([] {
  Cases rows;
  const auto cast = [&](const Tensor& from, const Tensor& to) {
    rows.push_back({.op = "Cast", .inputs = {from}, .attrs = {{"to", to.dtype()}}, .want = {to}});
  };
  cast(f32({2}, {1.5, -2}), c64({2}, {1.5, -2}));
  cast(f64({2}, {1.5, kEndless}), c64({2}, {1.5, {INFINITY, 0}}));
  cast(f64({0}, {}), c128({0}, {}));
  cast(i64({2}, {-3, 7}), c128({2}, {-3, 7}));
  cast(bools({2}, {true, false}), c64({2}, {1, 0}));
  cast(c64({2}, {{1, 2}, {3, -4}}), c128({2}, {{1, 2}, {3, -4}}));
  cast(c128({2}, {{1, 2}, {kComplexNan, 1e300}}), c64({2}, {{1, 2}, {NAN, INFINITY}}));
  cast(c64({2}, {{1, 2}, {3, -4}}), f32({2}, {1, 3}));
  cast(c128({2}, {{1.5, 2}, {-3, kComplexNan}}), f32({2}, {1.5, -3}));
  cast(c64({2}, {{1.5, 2}, {-3, NAN}}), f64({2}, {1.5, -3}));
  cast(c128({2}, {{1.9, 2}, {kComplexNan, 0}}), i32({2}, {1, 0}));
  cast(c128({3}, {0, 1i, {kComplexNan, 0}}), bools({3}, {false, true, true}));
  cast(c64({2}, {1, 2}), c64({2}, {1, 2}));
  for (auto [x, to] : {std::pair{any({5}), DType::c128},
                       {any_complex({5}), DType::f64},
                       {any_complex({5}), DType::c128}})
    rows.push_back({.op = "Cast", .inputs = {x}, .attrs = {{"to", to}}, .differentiate = {0}});
  // More than a block and a chunk of both kinds.
  for (DType to : {DType::c64, DType::f16, DType::i8})
    rows.push_back({.op = "Cast", .inputs = {any_complex({40'001}, -9, 9)}, .attrs = {{"to", to}}});
  rows.push_back({.op = "Cast", .inputs = {any({40'001})}, .attrs = {{"to", DType::c64}}});
  return rows;
});

const AddCases complex_sums([] {
  Cases rows;
  for (const char* op : {"Sum", "Mean", "Prod"}) {
    for (auto& axes : {ints({}), ints({0}), ints({1}), ints({-1}), ints({0, 2})})
      for (bool keep : {false, true})
        rows.push_back({.op = op,
                        .inputs = {any_complex({2, 3, 2})},
                        .attrs = {{"axes", axes}, {"keep_dims", keep}},
                        .differentiate = {0}});
    for (const Shape& shape : {Shape{}, Shape{0}, Shape{2, 0, 3}})
      rows.push_back({.op = op, .inputs = {any_complex(shape)}});
    rows.push_back(
        {.op = op, .inputs = {any_complex({2})}, .attrs = {{"axes", ints({1})}}, .error = "axis"});
    // Several leaves, and columns.
    rows.push_back({.op = op, .inputs = {any_complex({20'001})}});
    rows.push_back(
        {.op = op, .inputs = {as_c64(any_complex({3000, 7}))}, .attrs = {{"axes", ints({0})}}});
  }
  for (const char* op : {"Max", "Min"})
    rows.push_back({.op = op, .inputs = {any_complex({2})}, .error = "x is c128"});
  const Tensor x = c128({2, 2}, {1.0 + 1i, 2i, 3, -1i});
  rows.push_back({.op = "Sum", .inputs = {x}, .want = {c128({}, {4.0 + 2i})}});
  rows.push_back({.op = "Sum",
                  .inputs = {x},
                  .attrs = {{"axes", ints({0})}},
                  .want = {c128({2}, {4.0 + 1i, 1i})}});
  rows.push_back({.op = "Mean", .inputs = {x}, .want = {c128({}, {1.0 + 0.5i})}});
  rows.push_back({.op = "Mean",
                  .inputs = {any_complex({0})},
                  .want = {c128({}, {{kComplexNan, kComplexNan}})}});
  rows.push_back({.op = "Prod", .inputs = {x}, .want = {c128({}, {6.0 + 6i})}});
  rows.push_back({.op = "Prod", .inputs = {any_complex({0})}, .want = {c128({}, {1})}});
  // The other elements' product where one of them, or two, are 0.
  rows.push_back({.op = "ProdGrad",
                  .inputs = {c128({}, {1i}), c128({3}, {0, 2i, 3})},
                  .want = {c128({3}, {-6, 0, 0})}});
  rows.push_back({.op = "ProdGrad",
                  .inputs = {any_complex({2}), any_complex({2, 3})},
                  .attrs = {{"axes", ints({1})}},
                  .differentiate = {0, 1}});
  rows.push_back({.op = "ProdGradAlong",
                  .inputs = {any_complex({}), any_complex({4}), any_complex({4}, 0, 1)},
                  .differentiate = {0, 1, 2}});
  rows.push_back({.op = "Spread",
                  .inputs = {any_complex({3}), i64({2}, {2, 3})},
                  .attrs = {{"axes", ints({0})}, {"mean", true}},
                  .differentiate = {0}});
  rows.push_back({.op = "SumToShape",
                  .inputs = {any_complex({2, 3})},
                  .attrs = {{"shape", PartialShape{1, 3}}},
                  .differentiate = {0}});
  rows.push_back({.op = "SumToShapeOf",
                  .inputs = {any_complex({2, 3}), any_complex({3})},
                  .differentiate = {0}});
  return rows;
});

}  // namespace
}  // namespace troupe::test
