// Pictures x [n,h,w,c] of another size, or parts of them. Flips are reverse(x, 1) and reverse(x,
// 2).
#pragma once

#include <cstdint>

#include "ops/api/generated.hpp"

namespace troupe {

// Resize to known numbers of rows and columns: resize(x, 32, 32, {.method = "nearest"}).
Output resize(Output x, std::int64_t height, std::int64_t width, const ResizeOptions& options = {},
              Site site = Site::here());

// `height` rows from `top` on and `width` columns from `left` on. Throws Error where they are known
// to lie outside.
Output crop(Output x, std::int64_t top, std::int64_t left, std::int64_t height, std::int64_t width,
            Site site = Site::here());
// The middle of pictures, of a known size; an odd pixel is left out below, and on the right.
Output center_crop(Output x, std::int64_t height, std::int64_t width, Site site = Site::here());

}  // namespace troupe
