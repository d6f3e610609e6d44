#pragma once

#include "ops/metrics/metric.hpp"

namespace troupe::metrics {

// The mean of all elements of `values`, a scalar f64. `values` has any shape and any real dtype or
// bool (true is 1). NaN before the first update.
Metric mean(const Scope& scope, Output values, Site site = Site::here());

// The fraction of `predictions` equal to `labels`, which have the same shape and dtype.
Metric accuracy(const Scope& scope, Output predictions, Output labels, Site site = Site::here());

}  // namespace troupe::metrics
