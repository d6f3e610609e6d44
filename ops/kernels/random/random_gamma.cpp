// RandomGamma: numbers of gamma distributions.
#include "ops/kernels/random/substream.hpp"

using namespace troupe;

namespace {

// Marsaglia and Tsang, A simple method for generating gamma variables, 2000. An attempt succeeds
// with a probability above 0.95: 64 in a row do not fail, and the mean after them is for the
// compiler.
double gamma_above_one(Substream& numbers, double alpha) {
  const double d = alpha - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (int attempt = 0; attempt < 64; ++attempt) {
    const double x = numbers.normal(), t = 1 + c * x, v = t * t * t;
    const double u = 1 - numbers.units()[0];
    if (v > 0 && std::log(u) < x * x / 2 + d * (1 - v + std::log(v))) return d * v;
  }
  return alpha;
}
// Below 1: of alpha + 1, times u^(1 / alpha).
double gamma_number(const RandomState& random, double alpha, std::int64_t element) {
  Substream numbers(random, element);
  if (alpha >= 1) return gamma_above_one(numbers, alpha);
  const double u = 1 - numbers.units()[0];
  return gamma_above_one(numbers, alpha + 1) * std::exp(std::log(u) / alpha);
}

template <class T>
struct RandomGamma final : Kernel {
  Status compute(KernelContext& ctx) override {
    const RandomState random = ctx.random();
    return draw_elements<T, T>(
        ctx, "alpha", "positive and finite",
        [](double alpha) { return !(alpha > 0) || std::isinf(alpha); },
        [&](double alpha, std::int64_t i) {
          return T(Compute<T>(gamma_number(random, alpha, i)));
        });
  }
};

}  // namespace

TROUPE_OPS(random_gamma) {
  r.add(drawn_by_input("RandomGamma", "alpha", "y",
                       "Numbers from gamma distributions of shape alpha and scale 1, one for each "
                       "element of alpha: broadcast alpha for more, and divide by a rate. A result "
                       "too small for the type is 0, which is common for alpha near 0. An alpha "
                       "that is not positive and finite is an error."))
      .cpu(typed_kernel<RandomGamma, Floats>);
}
