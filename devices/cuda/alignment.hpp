// How memory is aligned, as libraries are told.
#pragma once

#include <cstdint>

namespace troupe::cuda {

// The largest power of two, up to `most` (which is one), that divides the address and, if several
// tensors lie there, the step to the next one.
inline std::uint32_t alignment_of(const void* data, std::uint32_t most,
                                  std::int64_t step_bytes = 0) {
  const std::uint64_t bits =
      reinterpret_cast<std::uint64_t>(data) | std::uint64_t(step_bytes) | most;
  return std::uint32_t(bits & (~bits + 1));
}

}  // namespace troupe::cuda
