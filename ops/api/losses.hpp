// Losses beside softmax_cross_entropy (math.hpp). Most return a loss for each element or row;
// mean() of it is what one minimises.
#pragma once

#include "ops/api/math.hpp"

namespace troupe {

// For each element, of independent classes: -label log(sigmoid(logit)) - (1 - label) log(1 -
// sigmoid(logit)), computed without overflow. Labels are probabilities of the logits' dtype and
// shape; numbers and tensors of other shapes broadcast.
Output sigmoid_cross_entropy(Output logits, const Operand& labels, Site site = Site::here());
// The mean of the squared differences, or of the absolute ones: a scalar.
Output mean_squared_error(Output predictions, const Operand& targets, Site site = Site::here());
Output mean_absolute_error(Output predictions, const Operand& targets, Site site = Site::here());
// For each element, of the difference d: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)
// (Huber, 1964). `delta` is above 0.
Output huber(Output predictions, const Operand& targets, double delta = 1,
             Site site = Site::here());
// For each element: max(0, 1 - logit) where the label is 1 and max(0, 1 + logit) where it is 0.
Output hinge(Output logits, const Operand& labels, Site site = Site::here());
// For each row along `axis`: 1 - a b / (|a| |b|). A row of zeros has the similarity 0, and so the
// distance 1, with every other.
Output cosine_distance(Output a, Output b, std::int64_t axis = -1, Site site = Site::here());

}  // namespace troupe
