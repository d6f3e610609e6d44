// What cross entropies ask of their inputs, on whichever device they run.
#pragma once

#include <string>

#include "core/tensor.hpp"

namespace troupe::detail {

// Every dimension but the last, whose elements are the classes. REQUIRES: at least one.
inline Shape rows_of(const Shape& logits) {
  return Shape(logits.dims().first(std::size_t(logits.rank() - 1)));
}

// Labels are probabilities.
inline Status check_probabilities(const Tensor& logits, const Tensor& labels) {
  if (logits.rank() >= 1 && labels.shape() == logits.shape()) return ok_status();
  return invalid_argument("logits are " + logits.shape().text() + ", labels are " +
                          labels.shape().text() + ": both have one shape, classes last");
}

// Labels are numbers of classes, in host memory.
template <class Label>
Status check_classes(const Tensor& logits, const Tensor& labels) {
  if (logits.rank() < 1 || labels.shape() != rows_of(logits.shape()))
    return invalid_argument("logits are " + logits.shape().text() + ", labels are " +
                            labels.shape().text() + ": one label for each row is wanted");
  const Label* label = labels.data<Label>();
  const std::int64_t classes = logits.dim(logits.rank() - 1);
  for (std::int64_t i = 0; i < labels.elements(); ++i)
    if (label[i] < 0 || label[i] >= classes)
      return invalid_argument("label " + std::to_string(label[i]) + " at index " +
                              std::to_string(i) + " is outside [0, " + std::to_string(classes) +
                              ")");
  return ok_status();
}

}  // namespace troupe::detail
