// CRC32C (Castagnoli): crc32c("123456789") is 0xE3069283.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace troupe::detail {

std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace troupe::detail
