// A scan whose outputs are stacked to shapes that only a run knows.
#pragma once

#include "ops/api/scan.hpp"

namespace troupe::detail {

// The shape (i64) of all of output k, stacked. It is asked for where the graph does not know a
// row's, as of no slices there is no row to look at.
using StackedShape = std::function<Output(std::size_t k)>;

Scanned scan(const std::vector<Output>& xs, const std::vector<Output>& state, std::size_t outputs,
             const ScanBody& body, const LoopOptions& options, Site site,
             const StackedShape& stacked_shape);

}  // namespace troupe::detail
