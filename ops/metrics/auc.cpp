#include "ops/metrics/auc.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/math.hpp"
#include "ops/api/node.hpp"
#include "ops/api/operators.hpp"

namespace troupe::metrics {

namespace {

// The part of [0, 1] that each score is in. A run with one that is in none fails.
Output bin_of(GraphBuilder& g, Output scores, std::int64_t bins, const Site& site) {
  const Output x = cast<double>(scores, site);
  const Output valid = logical_and(Operand(x, site) >= Operand(0, site),
                                   Operand(x, site) <= Operand(1, site), site);  // false for NaN
  auto behind = g.with_control(
      {assert_(all(valid, {}, site), {.message = "auc: a score is not in [0, 1]"}, site)});
  const Output part = floor(Operand(x, site) * Operand(bins, site), site);
  const Output in_last = minimum(part, Operand(bins - 1, site).beside(part), site);
  return cast<std::int64_t>(in_last, site);
}

// [bins, bins]: how much of a pair counts that has its negative in part i and its positive in j.
Output counts_for(GraphBuilder& g, std::int64_t bins, const Site& site) {
  const auto scalar = [&](std::int64_t value) { return constant(g, value, site); };
  const Output parts = range(scalar(0), scalar(bins), scalar(1), site);
  const Output negative = expand_dims(parts, 1, site);
  const Output above = cast<double>(less(negative, parts, site), site);
  const Output not_below = cast<double>(less_equal(negative, parts, site), site);
  return Operand(add(above, not_below, site), site) * Operand(0.5, site);
}

}  // namespace

Metric auc(const Scope& scope, Output scores, Output labels, const AucOptions& options, Site site) {
  check_given("auc: `scores`", scores, site);
  check_given("auc: `labels`", labels, site);
  const std::int64_t bins = options.bins;
  if (bins < 1 || bins > 4096)
    throw Error(invalid_argument("auc: 1 to 4096 bins, not " + std::to_string(bins)).at(site));
  auto inside = scope.enter();
  scores = of_one_shape(scores, labels, "auc", site);
  GraphBuilder& g = scope.graph();
  const Tally positives = tally(g, "positives", DType::i64, Shape{bins}, site),
              negatives = tally(g, "negatives", DType::i64, Shape{bins}, site);

  const Output bin = bin_of(g, scores, bins, site), is_positive = cast<bool>(labels, site);
  const auto count = [&](const Tally& tally, Output which) {
    const Output sums =
        unsorted_segment_sum(cast<std::int64_t>(which, site), bin, constant(g, bins, site), site);
    return assign_add(tally.sum, sums, site);
  };
  const Op update =
      group(g, {count(positives, is_positive), count(negatives, logical_not(is_positive, site))},
            "update", site);

  const Output p = cast<double>(positives.sum, site), n = cast<double>(negatives.sum, site);
  const Output weighed = mat_mul(expand_dims(n, 0, site), counts_for(g, bins, site), {}, site);
  const Output won = sum(mul(weighed, expand_dims(p, 0, site), site), {}, site);
  const Output pairs = mul(sum(p, {}, site), sum(n, {}, site), site);
  return {update, div(won, pairs, site),
          group(g, {positives.reset, negatives.reset}, "reset", site)};
}

}  // namespace troupe::metrics
