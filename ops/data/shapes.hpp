// Pictures of shapes, drawn by a program: a data set of the form of CIFAR-10 that needs no
// download.
#pragma once

#include <cstdint>

namespace troupe {

inline constexpr int kShapeSide = 32;

// Draws picture `index` of the set `seed`: 32 x 32 pixels of red, green and blue, row after row.
// Returns what it shows: 0 disk, 1 ring, 2 square, 3 triangle, 4 cross, 5 star, 6 bars, 7 crescent,
// 8 corner, 9 hourglass. Turned and squeezed by chance, of any size from a third of the picture on,
// in any color on any other, before blots and behind grain: no color and no pixel tells the shape,
// so that a linear classifier hardly learns anything. A function of its arguments alone.
int draw_shape(std::uint64_t seed, std::uint64_t index, std::uint8_t* image);

}  // namespace troupe
