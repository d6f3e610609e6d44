// RandomPoisson: how often what happens at a rate happens.
#include <math.h>  // lgamma_r, which has no variable that threads share

#include "ops/kernels/random/substream.hpp"

using namespace troupe;

namespace {

// By the inverse of the distribution: one number decides.
double poisson_by_search(double rate, double u) {
  double p = std::exp(-rate), sum = p, k = 0;
  while (u >= sum && k < 200) {
    k += 1;
    p *= rate / k;
    sum += p;
  }
  return k;
}

// Hormann, The transformed rejection method for generating Poisson random variables, 1993 (PTRS),
// for rates of 10 and more. An attempt succeeds with a probability above 0.7.
double poisson_by_rejection(Substream numbers, double rate) {
  const double b = 0.931 + 2.53 * std::sqrt(rate), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), log_rate = std::log(rate);
  for (int attempt = 0; attempt < 200; ++attempt) {
    const auto [first, second] = numbers.units();
    const double u = first - 0.5, v = 1 - second, side = 0.5 - std::abs(u);
    const double k = std::floor((2 * a / side + b) * u + rate + 0.43);
    if (side >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2)) return k;
    if (!(k >= 0) || (side < 0.013 && v > side)) continue;
    int sign = 0;
    if (std::log(v * inverse_alpha / (a / (side * side) + b)) <=
        k * log_rate - rate - ::lgamma_r(k + 1, &sign))
      return k;
  }
  return std::floor(rate);
}

double poisson_number(const RandomState& random, double rate, std::int64_t element) {
  Substream numbers(random, element);
  if (rate < 10) return poisson_by_search(rate, numbers.units()[0]);
  if (rate < 1e10) return poisson_by_rejection(numbers, rate);
  // The logarithms would lose more digits than a normal distribution is apart.
  return std::max(0.0, std::rint(rate + std::sqrt(rate) * numbers.normal()));
}

template <class T>
struct RandomPoisson final : Kernel {
  Status compute(KernelContext& ctx) override {
    const RandomState random = ctx.random();
    return draw_elements<T, T>(
        ctx, "rate", "finite and not negative",
        [](double rate) { return !(rate >= 0) || std::isinf(rate); },
        [&](double rate, std::int64_t i) {
          return T(Compute<T>(poisson_number(random, rate, i)));
        });
  }
};

}  // namespace

TROUPE_OPS(random_poisson) {
  r.add(drawn_by_input("RandomPoisson", "rate", "y",
                       "Numbers from Poisson distributions with the mean `rate`, one for each "
                       "element of rate: broadcast rate for more. A rate of 0 gives 0; from 1e10 "
                       "on, the nearest normal distribution is used. A rate that is negative or "
                       "not finite is an error."))
      .cpu(typed_kernel<RandomPoisson, Floats>);
}
