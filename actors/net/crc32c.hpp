// CRC32C (Castagnoli): crc32c("123456789") is 0xE3069283.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe {

// The checksum of a followed by b is crc32c(b, crc32c(a)). Pass pieces of at most kHotPiece right
// before or after they are copied, while they are in cache.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

inline constexpr std::size_t kHotPiece = 64u << 10;

}  // namespace troupe
