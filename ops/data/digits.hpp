// Generated digits that look handwritten: a data set that needs no download.
#pragma once

#include <cstdint>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

inline constexpr int kDigitSide = 28;

// The difficulty of the digits. With the defaults a softmax regression has several times the error
// rate of a small convolutional network.
struct DigitStyle {
  double warp = 1;     // rotation, slant, scale and position of the whole digit
  double jitter = 1;   // of each point of a stroke
  double noise = 1;    // pixel noise
  double clutter = 1;  // faint random strokes
};

// Draws digit `index` of the set `seed`: 28 x 28 bytes, 0 for paper and 255 for ink. Returns its
// label, 0 to 9. Deterministic.
int draw_digit(std::uint64_t seed, std::uint64_t index, std::uint8_t* image,
               const DigitStyle& style = {});

// Digits [first, first + count) of the set `seed`: images u8 [count,28,28] and labels u8 [count].
// For a test set, use a range that training does not use. invalid_argument for a negative count.
Expected<std::vector<Tensor>> digit_set(std::uint64_t seed, std::uint64_t first, std::int64_t count,
                                        const DigitStyle& style = {});

}  // namespace troupe
