#include "serialization/detail/crc32c.hpp"

#include <isa-l/crc.h>

#include <algorithm>

namespace troupe::detail {

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // the library's sizes are int
  std::uint32_t state = ~0u;
  while (!bytes.empty()) {
    const std::size_t n = std::min(bytes.size(), kMost);
    // The library only reads, although it asks for a mutable pointer.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes.data()));
    state = crc32_iscsi(data, int(n), state);
    bytes = bytes.subspan(n);
  }
  return ~state;
}

}  // namespace troupe::detail
