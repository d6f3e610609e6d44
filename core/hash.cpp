#include "core/hash.hpp"

namespace troupe {

std::uint64_t hash_bytes(const void* data, std::size_t size, std::uint64_t seed) {
  auto* bytes = static_cast<const unsigned char*>(data);
  std::uint64_t h = 0xcbf29ce484222325u ^ seed;
  for (std::size_t i = 0; i < size; ++i) h = (h ^ bytes[i]) * 0x100000001b3u;
  return mix64(h);
}

}  // namespace troupe
