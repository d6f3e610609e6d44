// How a bias fits a result, of which it has an element for each of the last dimension, on whichever
// device it is added.
#pragma once

#include <string>
#include <utility>

#include "core/tensor.hpp"

namespace troupe::detail {

// Shapes, known or in part, as text.
inline Status bias_does_not_fit(const std::string& bias, const std::string& y) {
  return invalid_argument("bias " + bias + " does not fit the channels of " + y);
}

// The shape of y with its bias, which is of rank 1.
inline Expected<PartialShape> with_bias(PartialShape y, const PartialShape& bias) {
  if (!y.known_rank() || !bias.known_rank() || !bias.known(0)) return y;
  const int last = y.rank() - 1;
  if (y.known(last) && y[last] != bias[0]) return bias_does_not_fit(bias.text(), y.text());
  y.set_dim(last, bias[0]);
  return y;
}

// REQUIRES: y has at least one dimension.
inline Status check_bias(const Shape& bias, const Shape& y) {
  if (bias == Shape{y.dim(y.rank() - 1)}) return ok_status();
  return bias_does_not_fit(bias.text(), y.text());
}

}  // namespace troupe::detail
