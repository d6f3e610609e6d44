#include "ops/nn/initial.hpp"

#include <cmath>

#include "ops/api/constant.hpp"
#include "ops/api/generated.hpp"

namespace troupe::nn {

Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype, Site site) {
  using Kind = Init::Kind;
  const Kind kind = init.kind_;
  double value = init.value_;
  if (!std::isfinite(value) || (value < 0 && kind != Kind::constant))
    throw Error(invalid_argument("an initialiser of " + std::to_string(value) +
                                 ": a deviation or reach is a number, and not negative")
                    .at(site));
  // From a variance to a deviation, and from that to the reach of uniform numbers.
  if (kind == Kind::by_fan_in || kind == Kind::by_fan_in_uniform)
    value = std::sqrt(value / double(fan_in));
  if (kind == Kind::by_fans || kind == Kind::by_fans_uniform)
    value = std::sqrt(value / double(fan_in + fan_out));
  if (kind == Kind::by_fan_in_uniform || kind == Kind::by_fans_uniform) value *= std::sqrt(3.0);
  // What is cut off beyond two deviations leaves so much of one.
  constexpr double kLeft = 0.87962566103423978;
  if (kind == Kind::by_fan_in || kind == Kind::by_fans) value /= kLeft;
  switch (kind) {
    case Kind::constant:
      return fill(
          constant(g, std::vector<std::int64_t>(shape.dims().begin(), shape.dims().end()), site),
          constant(g, value_or_throw(scalar_of(dtype, value)), site), site);
    case Kind::uniform:
    case Kind::by_fan_in_uniform:
    case Kind::by_fans_uniform:
      return random_uniform(g, shape, {.dtype = dtype, .low = -value, .high = value},
                            std::move(site));
    case Kind::normal:
      return random_standard_normal(g, shape, {.dtype = dtype, .stddev = value}, std::move(site));
    case Kind::truncated:
    case Kind::by_fan_in:
    case Kind::by_fans:
      break;
  }
  return truncated_normal(g, shape, {.dtype = dtype, .stddev = value}, std::move(site));
}

Tensor zeros(DType dtype, const Shape& shape, const Site& site) {
  auto made = Tensor::zeros(dtype, shape);
  if (!made.ok()) throw Error(made.status().at(site));
  return std::move(made).value();
}

void check_sizes(std::string_view layer, std::initializer_list<std::int64_t> sizes,
                 const Site& site) {
  for (std::int64_t size : sizes)
    if (size < 1)
      throw Error(
          invalid_argument(std::string(layer) + ": sizes are positive, not " + std::to_string(size))
              .at(site));
}

void check_groups(std::string_view layer, std::int64_t in, std::int64_t out, std::int64_t groups,
                  const Site& site) {
  if (in % groups == 0 && out % groups == 0) return;
  throw Error(invalid_argument(std::string(layer) + ": " + std::to_string(groups) +
                               " groups do not divide " + std::to_string(in) + " and " +
                               std::to_string(out) + " channels")
                  .at(site));
}

}  // namespace troupe::nn
