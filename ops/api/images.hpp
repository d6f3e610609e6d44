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

struct CropAndResizeOptions {
  double outside = 0;  // the value of pixels that lie outside of their picture
};
// Part i of the result [k, height, width, c] is what boxes[i] = {top, left, bottom, right} cuts
// from picture indices[i] (i32 or i64 [k]), resized bilinearly. 0 is the centre of a picture's
// first row or column and 1 that of its last; the corners of a box are the centres of the corners
// of its part. A box may reach beyond the picture, and may be flipped. Has gradients for x and for
// the boxes. f32 or f64. An index outside fails the run.
Output crop_and_resize(Output x, Output boxes, Output indices, std::int64_t height,
                       std::int64_t width, const CropAndResizeOptions& options = {},
                       Site site = Site::here());

}  // namespace troupe
