// The shapes of what is folded by segment.
#pragma once

#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/indices.hpp"

namespace troupe {

// [segments] + the dimensions of data behind those of the ids.
inline Expected<PartialShape> folded_shape(const PartialShape& data, const PartialShape& ids,
                                           std::int64_t segments) {
  if (!data.known_rank() || !ids.known_rank()) return PartialShape::unknown();
  if (!begins_with(data, ids))
    return invalid_argument(fmt::format("segment_ids {} must be the first dimensions of data {}",
                                        ids.text(), data.text()));
  return append(PartialShape{segments}, data, ids.rank());
}

// Of an op with the inputs data, segment_ids and num_segments.
inline Status unsorted_segments_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(2, 0));
  auto n = c.ints(2);
  if (n && (*n)[0] < 0) return invalid_argument("num_segments must not be negative");
  TROUPE_TRY(PartialShape shape,
             folded_shape(c.shape(0), c.shape(1), n ? (*n)[0] : PartialShape::kUnknown));
  c.set(0, std::move(shape));
  return ok_status();
}

// The value of num_segments, input 2. invalid_argument for what is no count.
inline Expected<std::int64_t> segment_count(const KernelContext& ctx) {
  TROUPE_TRY(auto n, host_ints(ctx.input(2), "num_segments"));
  if (n.size() != 1 || n[0] < 0)
    return invalid_argument("num_segments must be a scalar, not negative");
  return n[0];
}

}  // namespace troupe
