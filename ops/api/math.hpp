// What the generated wrappers leave to say at length.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

template <class T>
Output cast(Output x, Site site = Site::here()) {
  return cast(x, dtype_of<T>, std::move(site));
}

// Where the largest element along `axis` is, as i64.
Output argmax(Output x, std::int64_t axis = -1, Site site = Site::here());

// One dimension may be -1: what is left.
Output reshape(Output x, const std::vector<std::int64_t>& shape, Site site = Site::here());
// Dimension 0 stays, the others become one. Throws Error unless those are known.
Output flatten(Output x, Site site = Site::here());

// The loss of each row of logits [..., C]: against class numbers when the labels are integers
// [...], against probabilities [..., C] otherwise.
Output softmax_cross_entropy(Output logits, Output labels, Site site = Site::here());

// Windows of size x size, side by side.
Output max_pool(Output x, std::int64_t size, Site site = Site::here());
Output avg_pool(Output x, std::int64_t size, Site site = Site::here());

// Each element becomes 0 with probability `rate`, the others grow by 1 / (1 - rate). Other draws in
// each run.
Output dropout(Output x, double rate, Site site = Site::here());

}  // namespace troupe
