#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

struct AucOptions {
  std::int64_t bins = 200;  // 1 to 4096
};

// The area under the curve of true over false positives: the probability, an f64 scalar, that a
// positive example has a higher score than a negative one, where scores in the same of `bins` equal
// parts of [0, 1] count half. Scores are f32 or f64 in [0, 1], labels bool or 0 and 1, of one
// shape; a run with a score outside fails. NaN until there are examples of both kinds.
Metric auc(const Scope& scope, Output scores, Output labels, const AucOptions& options = {},
           Site site = Site::here());

}  // namespace troupe::metrics
