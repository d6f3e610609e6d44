// How many threads kernels of GPUs have.
#pragma once

#include <algorithm>
#include <cstdint>

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/device/arguments.hpp"

namespace troupe::cuda {

inline constexpr unsigned kThreads = 256;
inline constexpr std::int64_t kMostBlocks = 1 << 16;

// For n elements that threads share out. Depends on n alone.
inline Grid grid_for(std::int64_t n) {
  constexpr std::int64_t kEach = 4;  // elements of a thread, so that it has 16 bytes of most types
  const std::int64_t blocks = (n + kThreads * kEach - 1) / (kThreads * kEach);
  return {unsigned(std::clamp<std::int64_t>(blocks, 1, kMostBlocks)), kThreads};
}

// A block for each of n pieces of work; where there are more, blocks go through several.
inline Grid block_for_each(std::int64_t n) {
  return {unsigned(std::clamp<std::int64_t>(n, 1, kMostBlocks)), kThreads};
}

// How many numbers a thread alone goes through; for more, a block is worth its barriers.
inline constexpr std::int64_t kFew = 32;

// Strips of 32 columns, which a warp reads at once.
inline std::int64_t strips_of(std::int64_t columns) { return (columns + 31) / 32; }

// How long sums are cut where there are few of them, so that a GPU has enough blocks. `blocks`
// there are without; a part has at least `least` of n numbers. Depends on shapes alone.
inline device::Parts parts_of(std::int64_t n, std::int64_t blocks, std::int64_t least) {
  constexpr std::int64_t kBlocks = 1024;
  const std::int64_t most = std::min(n / least, kBlocks / std::max<std::int64_t>(1, blocks));
  if (most <= 1) return {};
  const std::int64_t each = (n + most - 1) / most;
  return {(n + each - 1) / each, each};
}
inline constexpr std::int64_t kLeastOfRow = 4096;     // of a part of a row: 16 for each thread
inline constexpr std::int64_t kLeastOfColumns = 512;  // rows of a part of columns: 64 for each warp

// How many registers a thread may have (GpuFunction) so that so many blocks fit onto a
// multiprocessor.
constexpr int registers_for(int blocks) { return 65536 / (blocks * int(kThreads)); }
// Of products (ops/device/tiles.cuh), whose threads have 16 sums each.
inline constexpr int kRegistersOfTiles = registers_for(2);
// Of long formulas of f64, of which each number takes two.
inline constexpr int kRegistersOfLongF64 = registers_for(3);

// A block for each tile of so many matrices (ops/device/tiles.cuh).
inline std::int64_t tiles_of(std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kTile = device::kMatMulTile;
  return matrices * ((rows + kTile - 1) / kTile) * ((columns + kTile - 1) / kTile);
}
inline Grid block_for_each_tile(std::int64_t matrices, std::int64_t rows, std::int64_t columns) {
  return block_for_each(tiles_of(matrices, rows, columns));
}

}  // namespace troupe::cuda
