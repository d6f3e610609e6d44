// Functions of one element.
#include <cmath>

#include "tests/ops/kernels/conformance.hpp"

namespace troupe::test {
namespace {

// y = f(x) on values in [low, high), with and without a gradient, and on an empty tensor. The
// second shape is neither a multiple of a vector nor of a chunk.
void function(Cases& rows, const std::string& op, double (*f)(double), double low, double high,
              bool gradient = true) {
  for (const Shape& shape : {Shape{2, 3}, Shape{}, Shape{0, 4}, Shape{70'001}}) {
    Tensor x = any(shape, low, high), y = x.clone().value(), narrow, wide;
    for (std::int64_t i = 0; i < y.elements(); ++i)
      y.mutable_data<double>()[i] = f(x.data<double>()[i]);
    const bool differentiate = gradient && shape.elements() < 10 && shape.elements() > 0;
    rows.push_back({.op = op,
                    .inputs = {x},
                    .differentiate = differentiate ? std::vector<int>{0} : std::vector<int>{},
                    .want = {y}});
    // f32, against f64 on the rounded inputs
    narrow = Tensor::make(DType::f32, shape).value();
    wide = Tensor::make(DType::f32, shape).value();
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      float v = float(x.data<double>()[i]);
      narrow.mutable_data<float>()[i] = v;
      wide.mutable_data<float>()[i] = float(f(v));
    }
    rows.push_back({.op = op, .inputs = {narrow}, .want = {wide}});
  }
}

const AddCases functions([] {
  Cases rows;
  function(
      rows, "Abs", [](double x) { return std::abs(x); }, -2, 2);
  function(
      rows, "Neg", [](double x) { return -x; }, -2, 2);
  function(
      rows, "Square", [](double x) { return x * x; }, -2, 2);
  function(
      rows, "Sign", [](double x) { return x > 0   ? 1.0
                                          : x < 0 ? -1.0
                                                  : 0.0; }, -2, 2, false);
  function(
      rows, "Reciprocal", [](double x) { return 1 / x; }, 0.5, 2);
  function(
      rows, "Sqrt", [](double x) { return std::sqrt(x); }, 0.1, 4);
  function(
      rows, "Rsqrt", [](double x) { return 1 / std::sqrt(x); }, 0.1, 4);
  function(
      rows, "Floor", [](double x) { return std::floor(x); }, -9, 9, false);
  function(
      rows, "Ceil", [](double x) { return std::ceil(x); }, -9, 9, false);
  function(
      rows, "Round", [](double x) { return std::nearbyint(x); }, -9, 9, false);
  function(
      rows, "Log1p", [](double x) { return std::log1p(x); }, -0.5, 3);
  function(
      rows, "Expm1", [](double x) { return std::expm1(x); }, -2, 2);
  function(
      rows, "Sin", [](double x) { return std::sin(x); }, -7, 7);
  function(
      rows, "Cos", [](double x) { return std::cos(x); }, -7, 7);
  function(
      rows, "Erf", [](double x) { return std::erf(x); }, -3, 3);
  function(
      rows, "Exp", [](double x) { return std::exp(x); }, -3, 3);
  function(
      rows, "Log", [](double x) { return std::log(x); }, 0.1, 9);
  function(
      rows, "Tanh", [](double x) { return std::tanh(x); }, -4, 4);
  function(
      rows, "Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -6, 6);
  function(
      rows, "Gelu", [](double x) { return x * std::erfc(-x / M_SQRT2) / 2; }, -6, 6);
  function(
      rows, "GeluTanh",
      [](double x) {
        return x / 2 * (1 + std::tanh(M_2_SQRTPI / M_SQRT2 * (x + 0.044715 * x * x * x)));
      },
      -3, 3);
  function(
      rows, "Softsign", [](double x) { return x / (1 + std::abs(x)); }, -3, 3);
  return rows;
});

const AddCases special([] {
  Tensor odd = f64({5}, {kInf, -kInf, kNan, 0, 1});
  Tensor odd32 = f32({5}, {float(kInf), -float(kInf), float(kNan), 0, 1});
  return Cases{
      {.op = "IsNan", .inputs = {odd}, .want = {bools({5}, {false, false, true, false, false})}},
      {.op = "IsInf", .inputs = {odd}, .want = {bools({5}, {true, true, false, false, false})}},
      {.op = "IsFinite", .inputs = {odd}, .want = {bools({5}, {false, false, false, true, true})}},
      {.op = "Exp", .inputs = {odd}, .want = {f64({5}, {kInf, 0, kNan, 1, M_E})}},
      {.op = "Exp",
       .inputs = {odd32},
       .want = {f32({5}, {float(kInf), 0, float(kNan), 1, float(M_E)})}},
      {.op = "Log",
       .inputs = {odd32},
       .want = {f32({5}, {float(kInf), float(kNan), float(kNan), -float(kInf), 0})}},
      {.op = "Tanh", .inputs = {odd32}, .want = {f32({5}, {1, -1, float(kNan), 0, 0.76159416f})}},
      {.op = "Sigmoid",
       .inputs = {odd32},
       .want = {f32({5}, {1, 0, float(kNan), 0.5, 0.73105858f})}},
      {.op = "Round",
       .inputs = {f64({4}, {0.5, 1.5, -0.5, 2.5})},
       .want = {f64({4}, {0, 2, -0.0, 2})}},
      {.op = "LogicalNot",
       .inputs = {bools({2}, {true, false})},
       .want = {bools({2}, {false, true})}},
      {.op = "Neg",
       .inputs = {i32({3}, {1, -2, INT32_MIN})},
       .want = {i32({3}, {-1, 2, INT32_MIN})}},
      {.op = "Abs", .inputs = {i64({3}, {1, -2, 0})}, .want = {i64({3}, {1, 2, 0})}},
      {.op = "Square", .inputs = {i32({2}, {-3, 1 << 17})}, .want = {i32({2}, {9, 0})}},
      {.op = "Exp", .inputs = {i32({1}, {1})}, .error = "i32"},
      {.op = "LogicalNot", .inputs = {i32({1}, {1})}, .error = "i32"},
  };
});

const AddCases second_order([] {
  Cases rows;
  const Tensor dy = any({2, 3}), y = any({2, 3}, 0.2, 0.9), x = any({2, 3}, -2, 2);
  for (const char* op : {"TanhGrad", "SigmoidGrad", "ReciprocalGrad", "SqrtGrad", "RsqrtGrad"})
    rows.push_back({.op = op, .inputs = {dy, y}, .differentiate = {0, 1}});
  for (const char* op : {"ErfGrad", "GeluGrad", "GeluTanhGrad", "SoftsignGrad"})
    rows.push_back({.op = op, .inputs = {dy, x}, .differentiate = {0, 1}});
  return rows;
});

const AddCases unary_slopes([] {
  return Cases{
      {.op = "ReciprocalGrad", .inputs = {f64({1}, {2}), f64({1}, {3})}, .want = {f64({1}, {-18})}},
      {.op = "SqrtGrad", .inputs = {f64({1}, {2}), f64({1}, {4})}, .want = {f64({1}, {0.25})}},
      {.op = "RsqrtGrad", .inputs = {f64({1}, {2}), f64({1}, {3})}, .want = {f64({1}, {-27})}},
      {.op = "ErfGrad",
       .inputs = {f64({1}, {1}), f64({1}, {0})},
       .want = {f64({1}, {1.1283791670955126})}},
      {.op = "GeluGrad", .inputs = {f64({1}, {4}), f64({1}, {0})}, .want = {f64({1}, {2})}},
      {.op = "GeluTanhGrad", .inputs = {f64({1}, {4}), f64({1}, {0})}, .want = {f64({1}, {2})}},
      {.op = "SoftsignGrad", .inputs = {f64({1}, {4}), f64({1}, {-1})}, .want = {f64({1}, {1})}},
  };
});

}  // namespace
}  // namespace troupe::test
