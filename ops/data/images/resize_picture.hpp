// Resizing pictures.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/data/images/picture.hpp"

namespace troupe {

// Of the rectangle of a picture that is resized.
struct PictureArea {
  double top = 0, left = 0, height = 0, width = 0;
};
// The whole picture, or the largest area in its middle with the sides' ratio of the size.
PictureArea area_for(const DecodedImage& picture, std::int64_t height, std::int64_t width,
                     data::Fit fit);

// Each pixel is a mean of those around its place, with weights that fall linearly to 0 at the
// distance of one pixel of the result, or of the picture if that is larger. In [0, 255], row by
// row. The same bits on every machine.
std::vector<float> resize_picture(const DecodedImage& picture, const PictureArea& area,
                                  std::int64_t height, std::int64_t width);

}  // namespace troupe
