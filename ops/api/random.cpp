#include "ops/api/random.hpp"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"

namespace troupe {

namespace {

void check_drawn(const char* op, DType dtype, const Site& site) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw Error(
        invalid_argument(fmt::format("{}: dtype is {}, not f32 or f64", op, dtype_name(dtype)))
            .at(site));
}
void check_above_0(const char* op, const char* what, double value, const Site& site) {
  if (!(value > 0) || std::isinf(value))
    throw Error(
        invalid_argument(fmt::format("{}: {} is finite and above 0, not {}", op, what, value))
            .at(site));
}

// Exponentially distributed with rate 1.
Output standard_exponential(GraphBuilder& g, const PartialShape& shape, DType dtype,
                            const Site& site) {
  const Output u = random_uniform(g, shape, {.dtype = dtype}, site);
  return neg(log1p(neg(u, site), site), site);
}

}  // namespace

Output random_normal(GraphBuilder& g, PartialShape shape,
                     const RandomStandardNormalOptions& options, Site site) {
  return random_standard_normal(g, std::move(shape), options, std::move(site));
}
Output random_normal_like(Output like, const RandomStandardNormalLikeOptions& options, Site site) {
  return random_standard_normal_like(like, options, std::move(site));
}

Output random_exponential(GraphBuilder& g, PartialShape shape,
                          const RandomExponentialOptions& options, Site site) {
  check_drawn("random_exponential", options.dtype, site);
  check_above_0("random_exponential", "rate", options.rate, site);
  const Output one = standard_exponential(g, shape, options.dtype, site);
  return div(one, number_beside(one, options.rate, "", site), site);
}

Output random_laplace(GraphBuilder& g, PartialShape shape, const RandomLaplaceOptions& options,
                      Site site) {
  check_drawn("random_laplace", options.dtype, site);
  check_above_0("random_laplace", "scale", options.scale, site);
  const Output y = sub(standard_exponential(g, shape, options.dtype, site),
                       standard_exponential(g, shape, options.dtype, site), site);
  return add(mul(y, number_beside(y, options.scale, "", site), site),
             number_beside(y, options.mean, "", site), site);
}

Output random_gumbel(GraphBuilder& g, PartialShape shape, const RandomGumbelOptions& options,
                     Site site) {
  check_drawn("random_gumbel", options.dtype, site);
  // One in 2^24 draws of f32 is 0, whose logarithm is no number.
  const double least = options.dtype == DType::f32
                           ? double(std::numeric_limits<float>::epsilon()) / 4
                           : std::numeric_limits<double>::epsilon() / 4;
  const Output e = standard_exponential(g, shape, options.dtype, site);
  return neg(log(maximum(e, number_beside(e, least, "", site), site), site), site);
}

Output random_beta(Output a, Output b, Site site) {
  check_given("random_beta: a", a, site);
  check_given("random_beta: b", b, site);
  if (!is_float(a.dtype()) || a.dtype() != b.dtype())
    throw Error(invalid_argument(fmt::format("random_beta: a is {} and b {}, not one floating type",
                                             dtype_name(a.dtype()), dtype_name(b.dtype())))
                    .at(site));
  const DType dtype = a.dtype();
  // In f64, where only gammas of tiny parameters are 0. If both are, it is as rare as they are
  // small, and the distribution is all but one of 0 and 1.
  a = cast(a, DType::f64, site), b = cast(b, DType::f64, site);
  const Output none = mul(add(a, b, site), number_beside(a, 0, "", site), site);
  a = add(a, none, site), b = add(b, none, site);  // broadcast
  const Output x = random_gamma(a, site), sum = add(x, random_gamma(b, site), site);
  const Output either = cast(bernoulli(div(a, add(a, b, site), site), site), DType::f64, site);
  const Output y =
      select(equal(sum, number_beside(sum, 0, "", site), site), either, div(x, sum, site), site);
  return stop_gradient(cast(y, dtype, site), site);
}

Output random_permutation(GraphBuilder& g, std::int64_t n, Site site) {
  if (n < 0) throw Error(invalid_argument(fmt::format("random_permutation: n is {}", n)).at(site));
  return random_order(constant(g, value_or_throw(Tensor::zeros(DType::bool_, Shape{n})), site),
                      site);
}

}  // namespace troupe
