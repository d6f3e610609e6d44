// Every elementwise op on floats at the ends of its arguments: infinities, NaN, both zeros,
// subnormals, the first and last arguments of finite results, huge ones; in each float type, at
// each place in a vector, against the same function in long double.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

using Real = long double;
constexpr Real kInfinite = std::numeric_limits<Real>::infinity();

// The function, and how far a result may be from it, in units in the last place of f32 and f64.
struct Row {
  std::function<Real(Real, Real, Real)> f;
  double ulps = 0;
};
using Unary = Real (*)(Real);
Row of(Unary f, double ulps) {
  return {[f](Real x, Real, Real) { return f(x); }, ulps};
}
using Binary = Real (*)(Real, Real);
Row of(Binary f, double ulps) {
  return {[f](Real a, Real b, Real) { return f(a, b); }, ulps};
}

constexpr Real kSeluScale = 1.0507009873554804934193349852946L;
constexpr Real kSeluBelow = kSeluScale * 1.6732632423543772848170429916717L;
Real truth(bool holds) { return holds ? 1 : 0; }
bool nan(Real x) { return std::isnan(x); }
Real sigmoid(Real x) { return 1 / (1 + std::exp(-x)); }
// e^-x^2: the part of x^2 that is lost would show.
Real bell(Real x) {
  const Real square = x * x, lost = std::fma(x, x, -square);
  return square > 20000 ? 0 : std::exp(-square) * (1 - lost);
}
Real modulo(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

const std::map<std::string, Row>& rows() {
  static const std::map<std::string, Row> table = {
      {"Abs", of([](Real x) { return std::fabs(x); }, 0)},
      {"Neg", of([](Real x) { return -x; }, 0)},
      {"Square", of([](Real x) { return x * x; }, 0.5)},
      {"Sign", of([](Real x) { return x > 0   ? 1
                                      : x < 0 ? -1
                                              : x; }, 0)},
      {"Reciprocal", of([](Real x) { return 1 / x; }, 0.5)},
      {"Sqrt", of([](Real x) { return std::sqrt(x); }, 0.5)},
      {"Rsqrt", of([](Real x) { return 1 / std::sqrt(x); }, 1.5)},
      {"Floor", of([](Real x) { return std::floor(x); }, 0)},
      {"Ceil", of([](Real x) { return std::ceil(x); }, 0)},
      {"Round", of([](Real x) { return std::rint(x); }, 0)},
      {"IsNan", of([](Real x) { return truth(nan(x)); }, 0)},
      {"IsInf", of([](Real x) { return truth(std::isinf(x)); }, 0)},
      {"IsFinite", of([](Real x) { return truth(std::isfinite(x)); }, 0)},
      {"Exp", of([](Real x) { return std::exp(x); }, 1)},
      {"Log", of([](Real x) { return std::log(x); }, 1)},
      {"Log1p", of([](Real x) { return std::log1p(x); }, 1)},
      {"Expm1", of([](Real x) { return std::expm1(x); }, 1)},
      {"Sin", of([](Real x) { return std::sin(x); }, 1)},
      {"Cos", of([](Real x) { return std::cos(x); }, 1)},
      {"Tan", of([](Real x) { return std::tan(x); }, 1)},
      {"Asin", of([](Real x) { return std::asin(x); }, 1)},
      {"Acos", of([](Real x) { return std::acos(x); }, 1)},
      {"Atan", of([](Real x) { return std::atan(x); }, 1)},
      {"Sinh", of([](Real x) { return std::sinh(x); }, 1)},
      {"Cosh", of([](Real x) { return std::cosh(x); }, 1)},
      {"Asinh", of([](Real x) { return std::asinh(x); }, 1)},
      {"Acosh", of([](Real x) { return std::acosh(x); }, 1)},
      {"Atanh", of([](Real x) { return std::atanh(x); }, 1)},
      {"Erf", of([](Real x) { return std::erf(x); }, 1)},
      {"Gelu", of([](Real x) { return x * std::erfc(-x * std::sqrt(Real(0.5))) / 2; }, 5)},
      {"Lgamma", of([](Real x) { return std::lgamma(x); }, 4)},
      {"Tanh", of([](Real x) { return std::tanh(x); }, 2)},
      {"Sigmoid", of(sigmoid, 2.5)},
      {"Softsign",
       of([](Real x) { return std::isinf(x) ? std::copysign(Real(1), x) : x / (1 + std::fabs(x)); },
          1.5)},
      {"Relu", of([](Real x) { return x < 0 ? 0 : x; }, 0)},
      {"Relu6", of([](Real x) { return x < 0   ? 0
                                       : x > 6 ? 6
                                               : x; }, 0)},
      {"Selu", of([](Real x) { return x > 0 ? kSeluScale * x : kSeluBelow * std::expm1(x); }, 2.5)},
      {"Elu", of([](Real x) { return x < 0 ? std::expm1(x) : x; }, 1)},
      {"Softplus",
       of([](Real x) { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::fabs(x))); }, 2)},

      {"Add", of([](Real a, Real b) { return a + b; }, 0.5)},
      {"Sub", of([](Real a, Real b) { return a - b; }, 0.5)},
      {"Mul", of([](Real a, Real b) { return a * b; }, 0.5)},
      {"Div", of([](Real a, Real b) { return a / b; }, 0.5)},
      {"SquaredDifference", of([](Real a, Real b) { return (a - b) * (a - b); }, 2.5)},
      {"Maximum", of([](Real a, Real b) { return nan(a) || a > b ? a : b; }, 0)},
      {"Minimum", of([](Real a, Real b) { return nan(a) || a < b ? a : b; }, 0)},
      {"Mod", of(modulo, 0.5)},
      {"Pow", of([](Real a, Real b) { return std::pow(a, b); }, 1)},
      {"Atan2", of([](Real y, Real x) { return std::atan2(y, x); }, 1.5)},
      {"LeakyRelu", of([](Real x, Real slope) { return x > 0 ? x : x * slope; }, 0.5)},
      {"Less", of([](Real a, Real b) { return truth(a < b); }, 0)},
      {"LessEqual", of([](Real a, Real b) { return truth(a <= b); }, 0)},
      {"Greater", of([](Real a, Real b) { return truth(a > b); }, 0)},
      {"GreaterEqual", of([](Real a, Real b) { return truth(a >= b); }, 0)},
      {"Equal", of([](Real a, Real b) { return truth(a == b); }, 0)},
      {"NotEqual", of([](Real a, Real b) { return truth(a != b); }, 0)},

      {"ReciprocalGrad", of([](Real dy, Real y) { return -dy * y * y; }, 2)},
      {"SqrtGrad", of([](Real dy, Real y) { return dy / (2 * y); }, 1)},
      {"RsqrtGrad", of([](Real dy, Real y) { return dy * y * y * y / -2; }, 3)},
      {"TanhGrad", of([](Real dy, Real y) { return dy * (1 - y * y); }, 2)},
      {"SigmoidGrad", of([](Real dy, Real y) { return dy * (y * (1 - y)); }, 2)},
      {"ErfGrad", of([](Real dy, Real x) { return dy * (2 / std::sqrt(M_PIl)) * bell(x); }, 2.5)},
      {"SoftsignGrad", of(
                           [](Real dy, Real x) {
                             const Real d = 1 + std::fabs(x);
                             return dy / d / d;
                           },
                           3)},
      {"ReluGrad", of([](Real dy, Real y) { return y > 0 ? dy : 0; }, 0)},
      {"Relu6Grad", of([](Real dy, Real y) { return y > 0 && y < 6 ? dy : 0; }, 0)},
      {"EluGrad", of([](Real dy, Real y) { return y < 0 ? dy * (y + 1) : dy; }, 1.5)},
      {"SeluGrad",
       of([](Real dy, Real x) { return dy * (x > 0 ? kSeluScale : kSeluBelow * std::exp(x)); }, 3)},
      {"LeakyReluGrad", {[](Real dy, Real x, Real slope) { return x > 0 ? dy : dy * slope; }, 0.5}},
      {"SoftplusGrad", of([](Real dy, Real y) { return dy * -std::expm1(-y); }, 2)},
      {"PowGradExponent",
       {[](Real dy, Real y, Real a) { return a > 0 ? dy * y * std::log(a) : 0; }, 2.5}},
  };
  return table;
}

// Ops without a row: why.
const std::map<std::string, std::string> kOthers = {
    {"Complex", "it moves elements"},
    {"Digamma", "it is a difference near its zeros, whose digits are lost"},
    {"FloorDiv", "a large quotient is rounded before it is floored"},
    {"GeluGrad", "it is a sum near its zero, whose digits are lost"},
    {"GeluTanh", "its exponent is rounded"},
    {"GeluTanhGrad", "its exponent is rounded"},
    {"Huber", "its difference may overflow where the loss does not"},
    {"Polygamma", "its attribute n has no default"},
    {"PowGradBase", "its exponent b - 1 is rounded"},
    {"Select", "it moves elements"},
};

// A gradient is asked about an ordinary dy, one in terms of y about the y's that its function
// gives.
bool defined(const std::string& op, const std::vector<Real>& x) {
  if (op.ends_with("Grad") && x[0] != 0 && !(std::fabs(x[0]) > 1e-3 && std::fabs(x[0]) < 1e3))
    return false;
  if (op == "TanhGrad") return std::fabs(x[1]) <= 1;
  if (op == "SigmoidGrad") return x[1] >= 0 && x[1] <= 1;
  if (op == "SqrtGrad" || op == "RsqrtGrad") return x[1] > 1e-30 && x[1] < 1e30;
  if (op == "EluGrad") return x[1] >= -1;
  if (op == "SeluGrad") return !(x[1] < -87);  // below, the digits of e^x are lost
  if (op == "SoftplusGrad") return x[1] >= 0;
  return true;
}

template <class T>
struct Format {
  using Limits = std::numeric_limits<T>;
  static constexpr int digits = Limits::digits, lowest = Limits::min_exponent;
  static constexpr Real most = Limits::max();
};
template <>
struct Format<half> {
  static constexpr int digits = 11, lowest = -13;
  static constexpr Real most = 65504;
};
template <>
struct Format<bfloat16> {
  static constexpr int digits = 8, lowest = -125;
  static constexpr Real most = 0x1.fep127;
};
template <class T>
T narrow(Real x) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return T(float(x));
  else
    return T(x);
}
template <class T>
Real value_of(T x) {
  if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
    return float(x);
  else
    return x;
}

// Values at which functions begin or cease to overflow, to vanish, to be reduced by periods.
template <class T>
std::vector<T> ends() {
  using F = Format<T>;
  const Real tiny = std::ldexp(Real(1), F::lowest - F::digits),
             eps = std::ldexp(Real(1), 1 - F::digits);
  const Real normal = std::ldexp(Real(1), F::lowest - 1);
  std::vector<Real> sizes = {0,           tiny,       3 * tiny,  normal / 3, normal - tiny,
                             normal,      normal * 4, eps * eps, eps,        0.5,
                             0.875,       1 - eps,    1,         1 + eps,    1.5,
                             2,           2.5,        M_PI_2,    3,          M_PI,
                             5,           6,          7,         9.3,        10,
                             11,          11.1,       16.7,      20,         26.6,
                             33,          44,         75,        87.3,       87.34,
                             88,          88.37,      88.5,      88.72,      88.723,
                             88.73,       89,         92,        103.9,      104,
                             150,         355,        708,       708.4,      709.78,
                             709.79,      710,        744.4,     745.2,      800,
                             11999,       12001,      1e5,       999999,     1000001,
                             0x1p24,      0x1p31,     1e10,      1e15,       0x1p53,
                             1.8e19,      1e20,       1e25,      1e30,       1e150,
                             F::most / 2, F::most,    kInfinite};
  std::mt19937_64 random(31);
  for (int i = 0; i < 24; ++i) {  // any number at all
    const int exponent =
        int(random() % std::uint64_t(-2 * F::lowest + F::digits)) + F::lowest - F::digits;
    sizes.push_back(std::ldexp(1 + Real(random() >> 11) * 0x1p-53L, exponent));
  }
  for (int i = 0; i < 24; ++i)  // and an ordinary one
    sizes.push_back(std::ldexp(Real(random() >> 11), -53 + i / 4));
  std::vector<T> values = {narrow<T>(std::nanl(""))};
  for (Real size : sizes)
    for (Real x : {size, -size}) values.push_back(narrow<T>(x));
  return values;
}

// `got` in units in the last place from `want`; infinite where one is NaN, or of the other sign.
template <class T>
double distance(T got, Real want) {
  using F = Format<T>;
  const Real x = value_of(got);
  if (nan(x) || nan(want)) return nan(x) && nan(want) ? 0 : double(kInfinite);
  if (x == want && std::signbit(x) == std::signbit(want)) return 0;
  if (std::signbit(x) != std::signbit(want)) return double(kInfinite);
  int exponent = 0;
  std::frexp(want, &exponent);
  const Real past = F::most + std::ldexp(F::most, -F::digits);  // what infinity stands for
  const Real ulp =
      std::ldexp(Real(1), std::clamp(exponent, F::lowest, F::lowest + 40000) - F::digits);
  if (std::isinf(x))
    return want >= past || -want >= past ? 0 : double(std::fabs((past - std::fabs(want)) / ulp));
  if (std::isinf(want)) return double(kInfinite);
  return double(std::fabs((x - want) / ulp));
}

template <class T>
bool same_element(const Tensor& a, std::int64_t i, const Tensor& b, std::int64_t j) {
  const T x = a.data<T>()[i], y = b.data<T>()[j];
  if constexpr (!std::is_same_v<T, bool>)
    if (nan(value_of(x)) && nan(value_of(y))) return true;
  return std::memcmp(&x, &y, sizeof x) == 0;
}

template <class T>
Tensor tensor_of(const std::vector<T>& values) {
  return Tensor::of<T>(Shape{std::int64_t(values.size())}, values);
}

// All arguments of an op with `inputs` inputs that are made of the ends of T: one vector for each.
template <class T>
std::vector<std::vector<T>> arguments(std::size_t inputs) {
  const std::vector<T> all = ends<T>();
  if (inputs == 1) return {all};
  std::vector<std::vector<T>> columns(inputs);
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i % 3; j < all.size(); j += 3) {
      columns[inputs - 2].push_back(all[i]);
      columns[inputs - 1].push_back(all[j]);
      if (inputs == 3) columns[0].push_back(narrow<T>(j % 2 ? 1 : -1));
    }
  return columns;
}

template <class T>
void check_right(const std::string& op, const Row& row, std::size_t inputs) {
  const auto columns = arguments<T>(inputs);
  std::vector<Tensor> tensors;
  for (const auto& column : columns) tensors.push_back(tensor_of(column));
  auto out = try_run(op, tensors);
  if (!out.ok() && out.status().code() == Code::unimplemented) return;  // not of this type
  REQUIRE_MESSAGE(out.ok(), out.status().text());
  const bool half_size = sizeof(T) == 2;  // computed in float, and rounded once more
  const double most = half_size && row.ulps != 0 ? 0.51 : row.ulps * 1.001;
  int shown = 0;
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    std::vector<Real> x(3);
    for (std::size_t k = 0; k < inputs; ++k) x[k] = value_of(columns[k][i]);
    if (!defined(op, x)) continue;
    const Real want = row.f(x[0], x[1], x[2]);
    double apart = 0, got = 0;
    if ((*out)[0].dtype() == DType::bool_)
      got = (*out)[0].data<bool>()[i], apart = got == double(want) ? 0 : double(kInfinite);
    else
      got = double(value_of((*out)[0].data<T>()[i])),
      apart = distance((*out)[0].data<T>()[i], want);
    if (apart <= most) continue;
    CHECK_MESSAGE(apart <= most, op << "(" << double(x[0]) << ", " << double(x[1]) << ", "
                                    << double(x[2]) << ") of " << dtype_name(dtype_of<T>)
                                    << " gives " << got << ", not " << double(want));
    if (++shown == 5) return;
  }
}

// The elementwise ops that take floats.
std::vector<const OpInfo*> float_ops() {
  std::vector<const OpInfo*> found;
  for (const OpInfo* op : ops::builtin().ops.all())
    if (op->def.elementwise && op->def.types.find("f32") != std::string::npos) found.push_back(op);
  return found;
}

// Calls f(tag of T) for the float types that `op` takes.
void each_float(const OpInfo& op, auto f) {
  const std::string types = " " + op.def.types + " ";
  f(float());
  if (types.find(" f64 ") != std::string::npos) f(double());
  if (types.find(" f16 ") != std::string::npos) f(half());
  if (types.find(" bf16 ") != std::string::npos) f(bfloat16());
}

template <class T>
void check_places(const OpInfo& op) {
  INFO(op.def.name << " of " << dtype_name(dtype_of<T>));
  auto columns = arguments<T>(op.in.size());
  const std::size_t n = std::min<std::size_t>(columns[0].size(), 500);
  std::vector<Tensor> tensors;
  for (auto& column : columns) {
    column.resize(n);
    tensors.push_back(tensor_of(column));
  }
  const Tensor all = run(op.def.name, tensors)[0];
  auto check = [&]<class Out>(Out) {
    // Behind `shift` others, without the last ones: elsewhere in a vector or behind the last whole
    // one.
    for (std::size_t shift : {1, 2, 3, 7, 13, 31, 64}) {
      std::vector<Tensor> moved;
      for (const auto& column : columns) {
        std::vector<T> values(shift, narrow<T>(1));
        values.insert(values.end(), column.begin(), column.end() - std::ptrdiff_t(shift % 5));
        moved.push_back(tensor_of(values));
      }
      const Tensor y = try_run(op.def.name, moved).value()[0];
      for (std::size_t i = 0; i + shift % 5 < n; ++i)
        if (!same_element<Out>(y, std::int64_t(i + shift), all, std::int64_t(i))) {
          FAIL_CHECK("element " << i << " is another one behind " << shift << " others");
          break;
        }
    }
    // Alone, and with scalars in the place of all inputs but the last.
    for (std::size_t i = 0; i < n; i += 37) {
      std::vector<Tensor> one, mixed;
      for (std::size_t k = 0; k < columns.size(); ++k) {
        const bool last = k + 1 == columns.size();
        const T x = columns[k][i];
        one.push_back(Tensor::scalar(x));
        mixed.push_back(last ? tensor_of(std::vector<T>(21, x)) : Tensor::scalar(x));
      }
      const Tensor y = try_run(op.def.name, one).value()[0];
      CHECK(same_element<Out>(y, 0, all, std::int64_t(i)));
      auto broadcast = try_run(op.def.name, mixed);
      if (op.def.shape == nullptr || !broadcast.ok()) continue;  // an op of equal shapes
      for (std::int64_t j : {0, 15, 20})
        CHECK(same_element<Out>((*broadcast)[0], j, all, std::int64_t(i)));
    }
  };
  if (all.dtype() == DType::bool_)
    check(bool());
  else
    check(T());
}

}  // namespace

TEST_CASE("every elementwise op on floats has a row of its ends, or the reason for none") {
  std::set<std::string> names;
  for (const OpInfo* op : float_ops()) {
    names.insert(op->def.name);
    CHECK_MESSAGE(rows().contains(op->def.name) != kOthers.contains(op->def.name), op->def.name);
  }
  for (const auto& row : rows()) CHECK_MESSAGE(names.contains(row.first), row.first);
  for (const auto& other : kOthers) CHECK_MESSAGE(names.contains(other.first), other.first);
}

TEST_CASE("elementwise ops are right at the ends of their arguments") {
  for (const OpInfo* op : float_ops()) {
    const auto row = rows().find(op->def.name);
    if (row == rows().end()) continue;
    each_float(*op, [&]<class T>(T) { check_right<T>(op->def.name, row->second, op->in.size()); });
  }
}

TEST_CASE("an element has the same bits wherever it is in an elementwise op") {
  for (const OpInfo* op : float_ops()) {
    if (!rows().contains(op->def.name)) continue;
    each_float(*op, [&]<class T>(T) { check_places<T>(*op); });
  }
}

TEST_CASE("an element has the same bits in each chunk of an elementwise op") {
  const std::vector<float> some = ends<float>();
  for (const OpInfo* op : float_ops()) {
    if (!rows().contains(op->def.name)) continue;
    std::vector<std::vector<float>> columns(op->in.size());
    for (std::size_t k = 0; k < columns.size(); ++k)
      for (std::size_t i = 0; i < 40'000; ++i)
        columns[k].push_back(some[(i + 5 * k) % some.size()]);
    std::vector<Tensor> tensors;
    for (const auto& column : columns) tensors.push_back(tensor_of(column));
    const Tensor y = run(op->def.name, tensors)[0];  // on one lane, and on three
    auto check = [&]<class Out>(Out) {
      const auto period = std::int64_t(some.size());
      for (std::int64_t i = period; i < y.elements(); ++i)
        if (!same_element<Out>(y, i, y, i - period)) {
          FAIL_CHECK(op->def.name << ": element " << i << " is not element " << i - period);
          return;
        }
    };
    if (y.dtype() == DType::bool_)
      check(bool());
    else
      check(float());
  }
}

TEST_CASE("slopes of Gelu, and Gelu by tanh, lose few digits") {
  std::vector<float> xs;
  for (int i = -15'000; i <= 15'000; ++i) xs.push_back(float(i) / 1000);
  const Tensor x = tensor_of(xs), ones = tensor_of(std::vector<float>(xs.size(), 1));
  const Tensor slope = run("GeluGrad", {ones, x})[0], by_tanh = run("GeluTanh", {x})[0],
               slope_of_it = run("GeluTanhGrad", {ones, x})[0];
  const auto normal = [](double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI); };
  for (std::size_t i = 0; i < xs.size(); ++i) {
    const double x = xs[i], below = std::erfc(-x * M_SQRT1_2) / 2;
    const double factor = std::sqrt(8 / M_PI), twice = factor * (x + 0.044715 * x * x * x);
    const double s = 1 / (1 + std::exp(-twice)), rest = 1 / (1 + std::exp(twice));
    const double slope_of_s = s * rest * factor * (1 + 3 * 0.044715 * x * x);
    const auto near = [i](const Tensor& got, double want, double size) {
      const double apart = std::abs(double(got.data<float>()[std::int64_t(i)]) - want);
      return apart <= 5 * std::numeric_limits<float>::epsilon() * size;
    };
    CAPTURE(x);
    CHECK(near(slope, below + x * normal(x), 1));
    CHECK(near(by_tanh, x * s, std::abs(x)));
    CHECK(near(slope_of_it, s + x * slope_of_s, 1));
  }
}

// Softmax of [0, x], for an x whose e^x is subnormal, and what is made of it.
template <class T>
void check_rows(T x) {
  const auto most = [](T got, Real want) { return distance(got, want) <= 2; };
  const Tensor logits = Tensor::of<T>(Shape{1, 2}, std::vector<T>{0, x});
  const Real small = std::exp(Real(x));
  CHECK(most(run("Softmax", {logits})[0].data<T>()[1], small));
  CHECK(run("LogSoftmax", {logits})[0].data<T>()[1] == x);
  const Tensor label = Tensor::of<std::int64_t>(Shape{1}, {0});
  const auto sparse = run("SparseSoftmaxCrossEntropyWithLogits", {logits, label});
  CHECK(most(sparse[1].data<T>()[1], small));
  const Tensor first = Tensor::of<T>(Shape{1, 2}, std::vector<T>{1, 0});
  const auto dense = run("SoftmaxCrossEntropyWithLogits", {logits, first});
  CHECK(most(dense[1].data<T>()[1], small));
  // dx = dy - e^y sum(dy), with a dy of which only the sum counts
  const Tensor y = Tensor::of<T>(Shape{1, 2}, std::vector<T>{0, x});
  CHECK(most(run("LogSoftmaxGrad", {first, y})[0].data<T>()[1], -small));
}

TEST_CASE("softmax and cross entropies keep subnormal probabilities") {
  for (float x : {-87.4f, -95.0f, -103.0f}) check_rows(x);
  for (double x : {-708.5, -730.0, -745.0}) check_rows(x);
}

TEST_CASE("the gates of an LSTM are right at the ends of their arguments") {
  const auto check = []<class T>(T, std::initializer_list<T> ends) {
    for (T x : ends) {
      const Tensor sums = Tensor::of<T>(Shape{1, 4}, std::vector<T>{x, x, x, x});
      const Tensor zeros = Tensor::zeros(dtype_of<T>, Shape{1, 4}).value();
      const Tensor cell = Tensor::of<T>(Shape{1, 1}, std::vector<T>{1});
      const Tensor gates = run("LstmCell", {sums, zeros, cell})[2];
      for (int gate : {0, 1, 3}) CHECK(distance(gates.data<T>()[gate], sigmoid(Real(x))) <= 2.5);
      CHECK(distance(gates.data<T>()[2], std::tanh(Real(x))) <= 2);
    }
  };
  const float inf = std::numeric_limits<float>::infinity();
  check(float(), {0.f, 1e-40f, -1e-40f, 20.f, -20.f, -87.4f, -100.f, -103.5f, 3e38f, inf, -inf});
  check(double(),
        {0.0, 1e-310, -1e-310, 40.0, -40.0, -708.5, -740.0, 1e300, double(inf), -double(inf)});
}

}  // namespace troupe::test
