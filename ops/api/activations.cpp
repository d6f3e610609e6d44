#include "ops/api/activations.hpp"

#include <cmath>
#include <numbers>

#include "ops/api/node.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

Output gelu(Output x, const GeluOptions& options, Site site) {
  check_given("gelu: x", x, site);
  if (detail::is_narrow(x))
    return cast(gelu(cast(x, DType::f32, site), options, site), x.dtype(), site);
  const auto number = [&](double value) { return number_beside(x, value, "gelu: x", site); };
  const Output half = mul(x, number(0.5), site);
  if (!options.approximate)
    return mul(half, add(erf(mul(x, number(std::numbers::sqrt2 / 2), site), site), number(1), site),
               site);
  const Output cube = mul(mul(x, x, site), mul(x, number(0.044715), site), site);
  const Output inner =
      mul(add(x, cube, site), number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), site);
  return mul(half, add(tanh(inner, site), number(1), site), site);
}

Output silu(Output x, Site site) {
  check_given("silu: x", x, site);
  if (detail::is_narrow(x)) return cast(silu(cast(x, DType::f32, site), site), x.dtype(), site);
  return mul(x, sigmoid(x, site), site);
}

Output leaky_relu(Output x, double slope, Site site) {
  const Operand zero = number_beside(x, 0, "leaky_relu: x", site);
  return select(greater(x, zero, site), x, mul(x, number_beside(x, slope, "", site), site), site);
}

Output selu(Output x, Site site) {
  constexpr double kScale = 1.0507009873554804934193349852946;
  constexpr double kAlpha = 1.6732632423543772848170429916717;
  const auto number = [&](double value) { return number_beside(x, value, "selu: x", site); };
  const Output positive = greater(x, number(0), site);
  // Where it is not wanted, e^x must not overflow: 0 times its gradient would be NaN.
  const Output below = select(positive, number(0), x, site);
  return select(positive, mul(x, number(kScale), site),
                mul(expm1(below, site), number(kScale * kAlpha), site), site);
}

Output mish(Output x, Site site) {
  check_given("mish: x", x, site);
  return mul(x, tanh(softplus(x, site), site), site);
}

Output hard_swish(Output x, Site site) {
  const auto number = [&](double value) { return number_beside(x, value, "hard_swish: x", site); };
  return mul(x, mul(relu6(add(x, number(3), site), site), number(1.0 / 6), site), site);
}

}  // namespace troupe
