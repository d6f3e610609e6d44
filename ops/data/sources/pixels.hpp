// Conversion of bytes: pixels to f32 in [0,1], labels to i64.
#pragma once

#include <cstdint>
#include <span>

namespace troupe {

inline void to_floats(std::span<const char> bytes, float* out) {
  for (char byte : bytes) *out++ = float(std::uint8_t(byte)) * (1.0f / 255);
}
inline void to_labels(std::span<const char> bytes, std::int64_t* out) {
  for (char byte : bytes) *out++ = std::uint8_t(byte);
}

}  // namespace troupe
