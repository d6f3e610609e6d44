#include "ops/nn/sampled_losses.hpp"

#include <limits>
#include <string>

#include "ops/api/losses.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/nn/shapes.hpp"

namespace troupe::nn {

namespace {

template <class Drawn>
Candidates candidates_of(const Drawn& drawn) {
  return {drawn.sampled, drawn.true_expected, drawn.sampled_expected};
}

void check_all(std::string what, const Table& weights, const Table& biases, Output labels, Output x,
               const Candidates& candidates, const Site& site) {
  what += ": ";
  check_given(what + "the weights", weights, site);
  check_given(what + "the biases", biases, site);
  check_given(what + "the labels", labels, site);
  check_given(what + "x", x, site);
  check_given(what + "the candidates", candidates.sampled, site);
  check_given(what + "the expected counts of labels", candidates.labels_expected, site);
  check_given(what + "the expected counts of candidates", candidates.sampled_expected, site);
  const auto want = [&](const char* name, const auto& value, const char* dims, int low, int high) {
    const PartialShape shape = value.shape();
    if (shape.known_rank() && shape.rank() >= low && shape.rank() <= high) return;
    throw Error(invalid_argument(what + name + " are " + dims + ", not " + shape.text()).at(site));
  };
  want("the weights", weights, "[classes, size]", 2, 2);
  want("the biases", biases, "[classes]", 1, 1);
  want("the rows of x", x, "[batch, size]", 2, 2);
  want("the labels", labels, "[batch] or [batch, k]", 1, 2);
  want("the candidates", candidates.sampled, "[n]", 1, 1);
  // Or one of them would be stretched to the others.
  const auto fit = [&](const char* name, const auto& value, const PartialShape& wanted) {
    if (PartialShape::merge(value.shape(), wanted).ok()) return;
    throw Error(invalid_argument(what + name + " are " + wanted.text() +
                                 " beside the others, not " + value.shape().text())
                    .at(site));
  };
  fit("the biases", biases, {weights.shape()[0]});
  fit("the rows of x", x, {labels.shape()[0], weights.shape()[1]});
  fit("the expected counts of labels", candidates.labels_expected, labels.shape());
  fit("the expected counts of candidates", candidates.sampled_expected, candidates.sampled.shape());
}

struct SomeLogits {
  Output labels;   // [batch, k]
  Output sampled;  // [batch, n]
  Output hit;      // bool [batch, n]: is the candidate one of the row's labels?
};

SomeLogits some_logits(const Table& weights, const Table& biases, Output labels, Output x,
                       const Candidates& candidates, const Site& site) {
  const auto offset = [&](Output ids, Output expected) {
    return sub(biases.rows(ids, site), log(expected, site), site);
  };
  const bool one = labels.shape().rank() == 1;
  const Output rows = one ? expand_dims(labels, 1, site) : labels;
  const Output hits = equal(expand_dims(rows, 2, site), candidates.sampled, site);
  const Output hit = any(hits, {.axes = {1}}, site);
  // A run, too, stretches none to the others.
  const Output sampled = ensure_same_shape(
      batch_mat_mul(x, weights.rows(candidates.sampled, site), {.transpose_b = true}, site), hit,
      site);
  const Output each = ensure_same_shape(candidates.labels_expected, labels, site);
  const Output sampled_expected =
      ensure_same_shape(candidates.sampled_expected, candidates.sampled, site);
  const Output products =
      mul(expand_dims(x, 1, site), weights.rows(rows, site), site);  // [batch, k, size]
  const Output expected = one ? expand_dims(each, 1, site) : each;
  return {add(sum(products, {.axes = {2}}, site), offset(rows, expected), site),
          add(sampled, offset(candidates.sampled, sampled_expected), site), hit};
}

// 1 / k in the shape of the labels' logits.
Output shares(Output logits, const Site& site) {
  const Output k = cast(dimension(logits, 1, site), logits.dtype(), site);
  return div(ones_like(logits, site), k, site);
}

}  // namespace

Candidates uniform_candidates(Output labels, std::int64_t n, std::int64_t classes,
                              const CandidateOptions& options, Site site) {
  check_given("uniform_candidates: the labels", labels, site);
  return candidates_of(uniform_candidate_sampler(
      labels, n, classes, {.tcount = options.dtype, .unique = options.unique}, site));
}

Candidates log_uniform_candidates(Output labels, std::int64_t n, std::int64_t classes,
                                  const CandidateOptions& options, Site site) {
  check_given("log_uniform_candidates: the labels", labels, site);
  return candidates_of(log_uniform_candidate_sampler(
      labels, n, classes, {.tcount = options.dtype, .unique = options.unique}, site));
}

Output sampled_softmax(const Table& weights, const Table& biases, Output labels, Output x,
                       const Candidates& candidates, Site site) {
  check_all("sampled_softmax", weights, biases, labels, x, candidates, site);
  const SomeLogits logits = some_logits(weights, biases, labels, x, candidates, site);
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  const Output others =
      select(logits.hit, Operand(kNever, site).beside(logits.sampled), logits.sampled, site);
  const Output all = concat({logits.labels, others}, {.axis = 1}, site);
  if (labels.shape().rank() == 1)  // class 0 of each row
    return softmax_cross_entropy(all, zeros_like(labels, site), site);
  const Output wanted = concat({shares(logits.labels, site), zeros_like(others, site)},  //
                               {.axis = 1}, site);
  return softmax_cross_entropy(all, wanted, site);
}

Output nce(const Table& weights, const Table& biases, Output labels, Output x,
           const Candidates& candidates, const NceOptions& options, Site site) {
  check_all("nce", weights, biases, labels, x, candidates, site);
  const SomeLogits logits = some_logits(weights, biases, labels, x, candidates, site);
  const Output right = sigmoid_cross_entropy(logits.labels, shares(logits.labels, site), site);
  Output wrong = softplus(logits.sampled, site);
  if (options.remove_accidental_hits)
    wrong = select(logits.hit, Operand(0.0, site).beside(wrong), wrong, site);
  return add(sum(right, {.axes = {1}}, site), sum(wrong, {.axes = {1}}, site), site);
}

}  // namespace troupe::nn
