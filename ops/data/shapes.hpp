// Generated pictures of shapes: a data set in the format of CIFAR-10 that needs no download.
#pragma once

#include <cstdint>

namespace troupe {

inline constexpr int kShapeSide = 32;

// Draws picture `index` of the set `seed`: 32 x 32 pixels of red, green and blue, row after row.
// Returns its label: 0 disk, 1 ring, 2 square, 3 triangle, 4 cross, 5 star, 6 bars, 7 crescent,
// 8 corner, 9 hourglass. Rotation, aspect, size (from a third of the picture), colors, background
// blots and noise are random. No color or pixel reveals the shape, so that a linear classifier
// learns almost nothing. Deterministic.
int draw_shape(std::uint64_t seed, std::uint64_t index, std::uint8_t* image);

}  // namespace troupe
