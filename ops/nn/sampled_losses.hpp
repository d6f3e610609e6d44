// Losses of classifiers with so many classes that a step computes the logits of some of them only.
//
//   const nn::Candidates drawn = nn::log_uniform_candidates(labels, 64, classes);
//   Output loss = mean(nn::sampled_softmax(weights, biases, labels, x, drawn));
#pragma once

#include <cstdint>

#include "ops/nn/tables.hpp"

namespace troupe::nn {

// Classes that were drawn to stand for all, and how often each class is among them on average.
// Programs may make these values in other ways, too.
struct Candidates {
  Output sampled;           // [n], of the labels' dtype
  Output labels_expected;   // of each label, in the shape of the labels
  Output sampled_expected;  // of each of `sampled`: [n]
};

struct CandidateOptions {
  bool unique = true;        // no class is drawn twice
  DType dtype = DType::f32;  // of the expected counts: that of the logits
};

// `n` of `classes` classes: each as probable as any other, or by Zipf's law, where classes are
// words in descending order of their frequency. See UniformCandidateSampler and
// LogUniformCandidateSampler. Labels are i32 or i64; one outside [0, classes) fails the run.
Candidates uniform_candidates(Output labels, std::int64_t n, std::int64_t classes,
                              const CandidateOptions& options = {}, Site site = Site::here());
Candidates log_uniform_candidates(Output labels, std::int64_t n, std::int64_t classes,
                                  const CandidateOptions& options = {}, Site site = Site::here());

// A loss for each row of x [batch, size], in place of that of all logits x W^T + b, with W
// [classes, size] and b [classes]. Labels are [batch], or [batch, k] for rows with k labels each,
// which share the probability equally. W and b may be in parts. They are read by their rows alone,
// and so are their gradients. To predict, compute all logits.
//
// Cross entropy of a softmax over a row's labels and the candidates (Jean et al., 2015), whose
// logits are made smaller by the logarithm of how often they are drawn. A candidate that is one of
// the row's labels counts as the label only.
Output sampled_softmax(const Table& weights, const Table& biases, Output labels, Output x,
                       const Candidates& candidates, Site site = Site::here());

struct NceOptions {
  // A candidate that is one of the row's labels does not count. Otherwise it counts as the label
  // and as a wrong class.
  bool remove_accidental_hits = false;
};
// Noise-contrastive estimation (Gutmann and Hyvaerinen, 2010): the sum of the logistic losses of
// telling the row's labels from the candidates.
Output nce(const Table& weights, const Table& biases, Output labels, Output x,
           const Candidates& candidates, const NceOptions& options = {}, Site site = Site::here());

}  // namespace troupe::nn
