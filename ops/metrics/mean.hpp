#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

// The mean of all elements of `values`, of any shape and any real dtype or bool (true is 1): an f64
// scalar. NaN before the first update.
Metric mean(const Scope& scope, Output values, Site site = Site::here());

// The share of `predictions` that equal `labels`; both of one shape, and of one dtype.
Metric accuracy(const Scope& scope, Output predictions, Output labels, Site site = Site::here());

}  // namespace troupe::metrics
