#include "ops/nn/initial.hpp"

#include <cmath>

#include "ops/api/generated.hpp"

namespace troupe::nn {

Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype, Site site) {
  if (init == Init::he)
    return truncated_normal(g, shape, {.dtype = dtype, .stddev = std::sqrt(2.0 / double(fan_in))},
                            std::move(site));
  const double reach = std::sqrt(6.0 / double(fan_in + fan_out));
  return random_uniform(g, shape, {.dtype = dtype, .low = -reach, .high = reach}, std::move(site));
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

}  // namespace troupe::nn
