// Losses beside softmax_cross_entropy (math.hpp). Most return a loss for each element or row;
// mean() of it is what one minimises. Targets broadcast, but predictions [n,1] with targets [n], or
// the reverse, throw Error: that would be a loss of each with all others.
#pragma once

#include "ops/api/math.hpp"

namespace troupe {

// For each element, of independent classes: -label log(sigmoid(logit)) - (1 - label) log(1 -
// sigmoid(logit)), computed without overflow. Labels are probabilities of the logits' dtype and
// shape; numbers and tensors of other shapes broadcast.
Output sigmoid_cross_entropy(Output logits, const Operand& labels, Site site = Site::here());
struct BinaryCrossEntropyOptions {
  double epsilon = 1e-7;  // in (0, 0.5): probabilities are kept so far from 0 and 1
};
// The same of probabilities, as a sigmoid has made them. sigmoid_cross_entropy() of the logits
// themselves has digits and gradients where this has none.
Output binary_cross_entropy(Output probabilities, const Operand& labels,
                            const BinaryCrossEntropyOptions& options = {},
                            Site site = Site::here());
// For each row along `axis`, of probabilities: the sum of p log(p / q), where 0 log 0 is 0.
Output kl_divergence(Output p, Output q, std::int64_t axis = -1, Site site = Site::here());
// The mean of the squared differences, or of the absolute ones: a scalar.
Output mean_squared_error(Output predictions, const Operand& targets, Site site = Site::here());
Output mean_absolute_error(Output predictions, const Operand& targets, Site site = Site::here());
// For each element, of the difference d: d^2 / 2 where |d| <= delta, else delta (|d| - delta / 2)
// (Huber, 1964). `delta` is above 0.
Output huber(Output predictions, const Operand& targets, double delta = 1,
             Site site = Site::here());
// For each element: max(0, 1 - logit) where the label is 1 and max(0, 1 + logit) where it is 0.
Output hinge(Output logits, const Operand& labels, Site site = Site::here());
// For each row along `axis`: a b / (|a| |b|), and 1 minus that. A row of zeros has the similarity
// 0, and so the distance 1, with every other.
Output cosine_similarity(Output a, Output b, std::int64_t axis = -1, Site site = Site::here());
Output cosine_distance(Output a, Output b, std::int64_t axis = -1, Site site = Site::here());
// For each row along the last dimension: max(0, |anchor - positive| - |anchor - negative| +
// margin), of Euclidean distances (Schroff et al., 2015, of squared ones).
Output triplet_margin(Output anchor, Output positive, Output negative, double margin = 1,
                      Site site = Site::here());

}  // namespace troupe
