// Folds of rows by segment beside those of generated.hpp.
#pragma once

#include "ops/api/generated.hpp"

namespace troupe {

// The sum of the rows of each segment divided by the root of their number; 0 of a segment without
// rows. Of f16 and bf16 computed in f32. Ids as for segment_sum() and unsorted_segment_sum().
Output segment_sqrt_n(Output data, Output segment_ids, Site site = Site::here());
Output unsorted_segment_sqrt_n(Output data, Output segment_ids, Output num_segments,
                               Site site = Site::here());

}  // namespace troupe
