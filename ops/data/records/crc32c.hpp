// CRC32C of bytes in memory.
#pragma once

#include <cstdint>
#include <string_view>

namespace troupe {

// Continues from `crc`, the register without its last inversion: ~0u before the first byte.
std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes);

}  // namespace troupe
