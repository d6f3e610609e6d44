#include "ops/api/activations.hpp"

#include <utility>

#include "ops/api/node.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

Output gelu(Output x, const GeluOptions& options, Site site) {
  return options.approximate ? gelu_tanh(std::move(x), site) : gelu(std::move(x), site);
}

Output silu(Output x, Site site) {
  check_given("silu: x", x, site);
  const auto f = [&](const Output& x) { return mul(x, sigmoid(x, site), site); };
  return detail::in_wide(site, f, x);
}

// f16 has no 0.1: 0.09998 times x would be rounded again.
Output leaky_relu(Output x, double slope, Site site) {
  check_given("leaky_relu: x", x, site);
  const auto f = [&](const Output& x) {
    return leaky_relu(x, number_beside(x, slope, "leaky_relu: x", site), site);
  };
  return detail::in_wide(site, f, x);
}

Output mish(Output x, Site site) {
  check_given("mish: x", x, site);
  const auto f = [&](const Output& x) { return mul(x, tanh(softplus(x, site), site), site); };
  return detail::in_wide(site, f, x);
}

Output hard_swish(Output x, Site site) {
  check_given("hard_swish: x", x, site);
  const auto f = [&](const Output& x) { return mul(x, hard_sigmoid(x, site), site); };
  return detail::in_wide(site, f, x);
}

Output hard_sigmoid(Output x, Site site) {
  check_given("hard_sigmoid: x", x, site);
  const auto f = [&](const Output& x) {
    const auto number = [&](double value) {
      return number_beside(x, value, "hard_sigmoid: x", site);
    };
    return mul(relu6(add(x, number(3), site), site), number(1.0 / 6), site);
  };
  return detail::in_wide(site, f, x);
}

Output log_sigmoid(Output x, Site site) {
  check_given("log_sigmoid: x", x, site);
  return neg(softplus(neg(x, site), site), site);
}

Output glu(Output x, std::int64_t axis, Site site) {
  check_given("glu: x", x, site);
  const auto f = [&](const Output& x) {
    const std::vector<Output> halves = split(x, 2, axis, {}, site);
    return mul(halves[0], sigmoid(halves[1], site), site);
  };
  return detail::in_wide(site, f, x);
}

}  // namespace troupe
