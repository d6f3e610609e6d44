// Folds of rows by segment beside those of generated.hpp.
#pragma once

#include <cstdint>

#include "ops/api/generated.hpp"

namespace troupe {

// The sum of the rows of each segment divided by the root of their number; 0 of a segment without
// rows. Of f16 and bf16 computed in f32. Ids as for segment_sum() and unsorted_segment_sum().
Output segment_sqrt_n(Output data, Output segment_ids, Site site = Site::here());
Output unsorted_segment_sqrt_n(Output data, Output segment_ids, Output num_segments,
                               Site site = Site::here());

// With a number of segments that is known: unsorted_segment_mean(x, nearest, 4).
namespace detail {
Output segments_of(const Output& data, std::int64_t number, const Site& site);
}
template <Integer T>
Output unsorted_segment_sum(Output data, Output segment_ids, T num_segments,
                            Site site = Site::here()) {
  return unsorted_segment_sum(data, segment_ids, detail::segments_of(data, num_segments, site),
                              site);
}
template <Integer T>
Output unsorted_segment_mean(Output data, Output segment_ids, T num_segments,
                             Site site = Site::here()) {
  return unsorted_segment_mean(data, segment_ids, detail::segments_of(data, num_segments, site),
                               site);
}
template <Integer T>
Output unsorted_segment_max(Output data, Output segment_ids, T num_segments,
                            Site site = Site::here()) {
  return unsorted_segment_max(data, segment_ids, detail::segments_of(data, num_segments, site),
                              site);
}
template <Integer T>
Output unsorted_segment_min(Output data, Output segment_ids, T num_segments,
                            Site site = Site::here()) {
  return unsorted_segment_min(data, segment_ids, detail::segments_of(data, num_segments, site),
                              site);
}
template <Integer T>
Output unsorted_segment_prod(Output data, Output segment_ids, T num_segments,
                             Site site = Site::here()) {
  return unsorted_segment_prod(data, segment_ids, detail::segments_of(data, num_segments, site),
                               site);
}
template <Integer T>
Output unsorted_segment_sqrt_n(Output data, Output segment_ids, T num_segments,
                               Site site = Site::here()) {
  return unsorted_segment_sqrt_n(data, segment_ids, detail::segments_of(data, num_segments, site),
                                 site);
}

}  // namespace troupe
