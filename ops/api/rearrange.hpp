// Elements of pictures and batches in other places: mirrored borders, and blocks of places that
// become channels or pictures. Written with a few ops each, so that gradients of any order come
// with them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

// x in a frame that mirrors it: `paddings` before and after, for each dimension. "reflect" does not
// repeat the border itself, "symmetric" does. No padding may be larger than what there is to
// mirror. Throws Error unless the number of dimensions is known.
Output mirror_pad(Output x, const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
                  std::string_view mode = "reflect", Site site = Site::here());

// Each block of block x block places of pictures [n, height, width, channels] becomes the channels
// of one place: [n, height / block, width / block, block * block * channels]. depth_to_space() is
// the way back. Throw Error unless all dimensions but n are known and divisible.
Output space_to_depth(Output x, std::int64_t block, Site site = Site::here());
Output depth_to_space(Output x, std::int64_t block, Site site = Site::here());

// Dimensions 1, 2, ... of x [n, ...], padded with zeros before and after, are cut into blocks of
// the sizes `block`; the places of a block become pictures of the batch: [block[0] * block[1] *
// ... * n, ...]. batch_to_space() is the way back, and removes `crops`. Throw Error unless the
// dimensions in blocks are known and divisible, and all others but one are known.
Output space_to_batch(Output x, const std::vector<std::int64_t>& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& paddings,
                      Site site = Site::here());
Output batch_to_space(Output x, const std::vector<std::int64_t>& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& crops,
                      Site site = Site::here());

// x, and the bound where x is beyond it: `high` where the bounds contradict. Numbers, or tensors
// that broadcast. The gradient goes to what was chosen; an x that is its bound shares it with it.
Output clip_by_value(const Operand& x, const Operand& low, const Operand& high,
                     Site site = Site::here());

}  // namespace troupe
