#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

// The confusion matrix, i64 [classes, classes]: element [i, j] counts examples with label i and
// prediction j. Predictions and labels are class numbers with the same shape and integer dtype (i32
// or i64). A number outside [0, classes) fails the run.
Metric confusion(const Scope& scope, Output predictions, Output labels, std::int64_t classes,
                 Site site = Site::here());

}  // namespace troupe::metrics
