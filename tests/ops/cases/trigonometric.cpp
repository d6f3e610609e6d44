// Trigonometric and hyperbolic functions and their inverses.
#include <cmath>
#include <limits>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

void function(Cases& rows, const std::string& op, double (*f)(double), double low, double high) {
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0, 4}, Shape{1'003}}) {
    const Tensor x = any(shape, low, high);
    Tensor y = x.clone().value();
    for (std::int64_t i = 0; i < y.elements(); ++i)
      y.mutable_data<double>()[i] = f(x.data<double>()[i]);
    const bool small = shape.elements() < 10 && shape.elements() > 0;
    rows.push_back({.op = op,
                    .inputs = {x},
                    .differentiate = small ? std::vector<int>{0} : std::vector<int>{},
                    .want = {y}});
    Tensor narrow = Tensor::make(DType::f32, shape).value(), wide = narrow.clone().value();
    for (std::int64_t i = 0; i < shape.elements(); ++i) {
      narrow.mutable_data<float>()[i] = float(x.data<double>()[i]);
      wide.mutable_data<float>()[i] = float(f(double(float(x.data<double>()[i]))));
    }
    rows.push_back({.op = op, .inputs = {narrow}, .want = {wide}});
  }
}

const AddCases functions([] {
  Cases rows;
  function(
      rows, "Tan", [](double x) { return std::tan(x); }, -1.4, 1.4);
  function(
      rows, "Asin", [](double x) { return std::asin(x); }, -0.95, 0.95);
  function(
      rows, "Acos", [](double x) { return std::acos(x); }, -0.95, 0.95);
  function(
      rows, "Atan", [](double x) { return std::atan(x); }, -5, 5);
  function(
      rows, "Sinh", [](double x) { return std::sinh(x); }, -3, 3);
  function(
      rows, "Cosh", [](double x) { return std::cosh(x); }, -3, 3);
  function(
      rows, "Asinh", [](double x) { return std::asinh(x); }, -5, 5);
  function(
      rows, "Acosh", [](double x) { return std::acosh(x); }, 1.1, 5);
  function(
      rows, "Atanh", [](double x) { return std::atanh(x); }, -0.95, 0.95);
  return rows;
});

const AddCases edges([] {
  const Tensor odd = f64({5}, {kInfinite, -kInfinite, kNoNumber, 0.0, -0.0});
  const double right = M_PI_2;
  return Cases{
      {.op = "Tan",
       .inputs = {odd},
       .want = {f64({5}, {kNoNumber, kNoNumber, kNoNumber, 0.0, -0.0})}},
      {.op = "Asin",
       .inputs = {odd},
       .want = {f64({5}, {kNoNumber, kNoNumber, kNoNumber, 0.0, -0.0})}},
      {.op = "Acos",
       .inputs = {odd},
       .want = {f64({5}, {kNoNumber, kNoNumber, kNoNumber, right, right})}},
      {.op = "Atan", .inputs = {odd}, .want = {f64({5}, {right, -right, kNoNumber, 0.0, -0.0})}},
      {.op = "Sinh",
       .inputs = {odd},
       .want = {f64({5}, {kInfinite, -kInfinite, kNoNumber, 0.0, -0.0})}},
      {.op = "Cosh", .inputs = {odd}, .want = {f64({5}, {kInfinite, kInfinite, kNoNumber, 1, 1})}},
      {.op = "Asinh",
       .inputs = {odd},
       .want = {f64({5}, {kInfinite, -kInfinite, kNoNumber, 0.0, -0.0})}},
      {.op = "Acosh",
       .inputs = {odd},
       .want = {f64({5}, {kInfinite, kNoNumber, kNoNumber, kNoNumber, kNoNumber})}},
      {.op = "Atanh",
       .inputs = {odd},
       .want = {f64({5}, {kNoNumber, kNoNumber, kNoNumber, 0.0, -0.0})}},
      {.op = "Asin",
       .inputs = {f64({3}, {1, -1, 1.5})},
       .want = {f64({3}, {right, -right, kNoNumber})}},
      {.op = "Atanh",
       .inputs = {f64({3}, {1, -1, 2})},
       .want = {f64({3}, {kInfinite, -kInfinite, kNoNumber})}},
      {.op = "Acosh", .inputs = {f64({2}, {1, 0.5})}, .want = {f64({2}, {0, kNoNumber})}},
      // Of the point (x, y), y first; signs of zeros and infinities as C has them.
      {.op = "Atan2",
       .inputs = {f64({8}, {0.0, -0.0, 0.0, -0.0, 1, kInfinite, -kInfinite, kNoNumber}),
                  f64({8}, {1, 1, -1, -1, 0, -kInfinite, kInfinite, 1})},
       .want = {f64({8}, {0.0, -0.0, M_PI, -M_PI, right, 3 * M_PI_4, -M_PI_4, kNoNumber})}},
      {.op = "Atan2", .inputs = {any({2, 3}, 0.5, 2), any({3}, -2, -0.5)}, .differentiate = {0, 1}},
      {.op = "Atan2",
       .inputs = {any({4, 1}, -2, -0.5), any({1, 3}, 0.5, 2)},
       .differentiate = {0, 1}},
      {.op = "Atan2",
       .inputs = {any({2, 3}, 0.5, 2), any({2, 3}, -2, -0.5)},
       .differentiate = {0, 1}},
      {.op = "Atan2", .inputs = {any({0, 3}), any({3})}, .want = {any({0, 3})}},
      {.op = "Atan2", .inputs = {any({2}), any({3})}, .error = "[2]"},
      {.op = "Tan", .inputs = {i32({1}, {1})}, .error = "i32"},
      {.op = "Atan2", .inputs = {i32({1}, {1}), i32({1}, {1})}, .error = "i32"},
  };
});

}  // namespace
}  // namespace troupe::test
