#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

struct AucOptions {
  std::int64_t bins = 200;  // 1 to 4096
};

// The area under the ROC curve, a scalar f64: the probability that a positive example has a higher
// score than a negative one. Scores are put into `bins` equal bins of [0, 1]; two scores of the
// same bin count one half. Scores are f32 or f64 in [0, 1], labels bool or 0 and 1, of the same
// shape. A score outside [0, 1] fails the run. NaN until there are examples of both classes.
Metric auc(const Scope& scope, Output scores, Output labels, const AucOptions& options = {},
           Site site = Site::here());

}  // namespace troupe::metrics
