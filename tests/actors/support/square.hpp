// A graph whose one node is work for a lane.
#pragma once

#include <span>
#include <vector>

#include "ops/api.hpp"

namespace troupe::test {

inline Tensor ramp(const Shape& shape) {
  std::vector<float> values(std::size_t(shape.elements()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.37f * float(i % 1009) - 100.0f;
  return Tensor::of(shape, std::span<const float>(values));
}

// Too costly for whoever carries messages.
struct Square {
  Graph g;
  Output x = placeholder<float>(g, PartialShape{256, 256}, "x");
  Output y = mat_mul(x, x);
  Tensor fed = ramp(Shape{256, 256});
};

}  // namespace troupe::test
