#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

// How often label i was predicted as j: i64 [classes, classes]. Predictions and labels are class
// numbers of one shape and one integer dtype (i32 or i64); a run with one outside [0, classes)
// fails.
Metric confusion(const Scope& scope, Output predictions, Output labels, std::int64_t classes,
                 Site site = Site::here());

}  // namespace troupe::metrics
