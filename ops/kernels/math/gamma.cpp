// Lgamma and its derivatives: Digamma, Polygamma. Computed in double, whatever the type.
#include <math.h>  // lgamma_r, which has no variable that threads share

#include <limits>
#include <numbers>

#include "ops/kernels/support/elementwise.hpp"
#include "ops/kernels/support/float_function.hpp"
#include "ops/kernels/support/grad.hpp"

using namespace troupe;

namespace {

// B(2k) / (2k)! of Bernoulli's numbers, from k = 1 on.
constexpr double kEulerMaclaurin[] = {1.0 / 12,
                                      -1.0 / 720,
                                      1.0 / 30240,
                                      -1.0 / 1209600,
                                      1.0 / 47900160,
                                      -691.0 / 1307674368000.0,
                                      1.0 / 74724249600.0,
                                      -3617.0 / 10670622842880000.0};

// x^s times the sum of (x + k)^-s over k >= 0, for x > 0 and s > 1: the first terms, and by Euler
// and Maclaurin those behind them. It is between 1 and about x, where the sum itself may be too
// large or too small for a number.
double scaled_zeta(double s, double x) {
  const double first = x;
  double sum = 0;
  for (; x < 10 + s / 2; x += 1) {
    const double term = std::pow(first / x, s);
    sum += term;
    if (term <= 1e-18 * sum) return sum;
  }
  double power = std::pow(first / x, s), factor = s;
  sum += power * (x / (s - 1)) + power / 2;
  for (int k = 0; k < 8; ++k) {
    power /= x;
    sum += kEulerMaclaurin[k] * factor * power;
    factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
    power /= x;
  }
  return sum;
}
// n! times the sum of (x + k)^-(n + 1), for x > 0 and n > 0. A part on the way may be 0 or infinite
// only where the whole is.
double polygamma_above_zero(int n, double x) {
  const int half = (n + 1) / 2;
  const double large = std::tgamma(n + 1.0) * std::pow(x, -half) * scaled_zeta(n + 1, x);
  return large * std::pow(x, half - (n + 1));
}
// The same for any x: of x = part - m below 0, the m terms below 0 are those of 1 - part, and from
// m on none, with the sign of (-1)^(n + 1).
double polygamma_size(int n, double x) {
  if (x > 0) return polygamma_above_zero(n, x);
  const double part = x - std::floor(x);
  const double rest = std::ceil(x) - x;  // 1 - part, with all its digits
  if (rest == 0) {                       // a pole
    return n % 2 != 0 ? std::numeric_limits<double>::infinity()
                      : std::numeric_limits<double>::quiet_NaN();
  }
  const double one = polygamma_above_zero(n, part), other = polygamma_above_zero(n, rest);
  const double beyond = polygamma_above_zero(n, 1 - x);  // may be all that is left of the others
  return n % 2 != 0 ? one + other - beyond : one - other + beyond;
}

double digamma_above_zero(double x) {
  double sum = 0;
  for (; x < 10; x += 1) sum -= 1 / x;
  // log x - 1 / 2x - sum of B(2k) / (2k x^2k)
  const double z = 1 / (x * x);
  const double tail =
      z * (1.0 / 12 -
           z * (1.0 / 120 -
                z * (1.0 / 252 -
                     z * (1.0 / 240 - z * (1.0 / 132 - z * (691.0 / 32760 - z * (1.0 / 12)))))));
  return sum + std::log(x) - 0.5 / x - tail;
}
double digamma_of(double x) {
  if (std::isinf(x)) return x > 0 ? x : std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -std::copysign(std::numeric_limits<double>::infinity(), x);
  if (x > 0) return digamma_above_zero(x);
  const double part = x - std::round(x);  // exact, however close to 0
  if (part == 0) return std::numeric_limits<double>::quiet_NaN();
  return digamma_above_zero(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * part);
}
double polygamma_of(int n, double x) {
  if (n == 0) return digamma_of(x);
  if (std::isinf(x)) return x > 0 ? 0 : std::numeric_limits<double>::quiet_NaN();
  if (std::isnan(x)) return x;
  const double size = polygamma_size(n, x);
  return n % 2 == 0 ? -size : size;
}

struct Lgamma {
  template <class T>
  T operator()(T x) const {
    int sign = 0;
    return T(::lgamma_r(double(x), &sign));
  }
};
struct Digamma {
  template <class T>
  T operator()(T x) const {
    return T(digamma_of(double(x)));
  }
};
struct Polygamma {
  explicit Polygamma(const KernelSpec& s) : n(int(s.int_attr("n"))) {}
  template <class T>
  T operator()(T x) const {
    return T(polygamma_of(n, double(x)));
  }
  int n;
};

constexpr std::int64_t kMostDerived = 100;
Status polygamma_shape(InferenceContext& c) {
  const std::int64_t n = c.int_attr("n");
  if (n < 0 || n > kMostDerived)
    return invalid_argument("n is " + std::to_string(n) + ": it must be in [0, 100]");
  return same_shape(c);
}

Output polygamma_node(Output x, std::int64_t n) {
  return x.graph().add("Polygamma", {x}, {{"n", n}});
}
std::vector<Output> lgamma_grad(GradContext& c) {
  return {multiply(c.dy[0], c.g.add("Digamma", {c.x[0]}))};
}
std::vector<Output> digamma_grad(GradContext& c) {
  return {multiply(c.dy[0], polygamma_node(c.x[0], 1))};
}
std::vector<Output> polygamma_grad(GradContext& c) {
  return {multiply(c.dy[0], polygamma_node(c.x[0], c.int_attr("n") + 1))};
}

}  // namespace

TROUPE_OPS(gamma_functions) {
  r.add(float_function("Lgamma", lgamma_grad,
                       "The logarithm of the absolute value of the gamma function; inf at 0 and at "
                       "negative integers."))
      .cpu(elementwise<Lgamma>);
  r.add(float_function("Digamma", digamma_grad,
                       "The derivative of Lgamma. At 0 it is an infinity of the opposite sign; at "
                       "negative integers NaN."))
      .cpu(elementwise<Digamma>);
  OpDef polygamma =
      float_function("Polygamma", polygamma_grad,
                     "The n-th derivative of Digamma, n from 0 to 100. At 0 and at negative "
                     "integers it is inf for an odd n, else NaN.");
  polygamma.attrs = {"n: int"};
  polygamma.shape = polygamma_shape;
  r.add(std::move(polygamma)).cpu(elementwise<Polygamma>);
}
