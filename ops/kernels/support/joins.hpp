// Joining tensors along a dimension and taking them apart: what Concat, Split, Pack and Unpack have
// in common.
//
// Along one dimension every tensor is [outer, extent, inner]; what is copied are rows of
// extent * inner elements. Joined and parts differ only in who is read and who is written.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/kernels/support/moves.hpp"

namespace troupe {

// All inputs, which have the given widths along `axis`, as one tensor of `shape`.
Expected<Tensor> join(const KernelContext& ctx, const Shape& shape, int axis,
                      const std::vector<std::int64_t>& widths);
// Outputs = parts of the given shapes, which fill input 0 along `axis`.
Status take_apart(KernelContext& ctx, const std::vector<Shape>& shapes, int axis,
                  const std::vector<std::int64_t>& widths);
// Lists and scalars one after another: what Concat and Pack make of shapes.
void joined_ints(InferenceContext& c);

}  // namespace troupe
