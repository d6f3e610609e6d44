// How many threads kernels of GPUs have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/cuda/gpu_kernel.hpp"

namespace troupe::cuda {

inline constexpr unsigned kThreads = 256;
inline constexpr std::int64_t kMostBlocks = 1 << 16;

// For n elements that threads share out. Depends on n alone.
inline Grid grid_for(std::int64_t n) {
  constexpr std::int64_t kEach = 4;  // elements of a thread, so that it has 16 bytes of most types
  const std::int64_t blocks = (n + kThreads * kEach - 1) / (kThreads * kEach);
  return {unsigned(std::clamp<std::int64_t>(blocks, 1, kMostBlocks)), kThreads};
}

}  // namespace troupe::cuda
