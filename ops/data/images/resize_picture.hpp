// Resizing pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/data/images/picture.hpp"

namespace troupe {

// The part of a picture that is resized, in pixels.
struct PictureArea {
  double top = 0, left = 0, height = 0, width = 0;
};
// The whole picture, or (for Fit::crop) the largest central area with the result's aspect ratio.
PictureArea area_for(const DecodedImage& picture, std::int64_t height, std::int64_t width,
                     data::Fit fit);

// Resizes with a triangle filter: each pixel is a weighted mean whose weights fall linearly to 0 at
// a distance of one pixel of the result, or of the picture if that is larger. Values in [0, 255],
// row by row. The same bits on every machine.
std::vector<float> resize_picture(const DecodedImage& picture, const PictureArea& area,
                                  std::int64_t height, std::int64_t width);

}  // namespace troupe
