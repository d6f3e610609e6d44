// Initial values of parameters.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "graph/builder.hpp"

namespace troupe::nn {

// Random initialisers. The numbers depend on the graph's seed and the variable's name.
enum class Init {
  glorot,  // uniform in +- sqrt(6 / (fan in + fan out)): for tanh, sigmoid and linear layers
  he,      // truncated normal, deviation sqrt(2 / fan in): before a Relu
};
Output initial_weights(GraphBuilder& g, Init init, const Shape& shape, std::int64_t fan_in,
                       std::int64_t fan_out, DType dtype = DType::f32, Site site = Site::here());

Tensor zeros(DType dtype, const Shape& shape, const Site& site = Site::here());

// Throws Error, in the name of `layer`, for a size below 1.
void check_sizes(std::string_view layer, std::initializer_list<std::int64_t> sizes,
                 const Site& site);

}  // namespace troupe::nn
