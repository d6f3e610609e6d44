// The emulated GPU: CUDA's words for a host's compiler, so that device code of ops/device/ runs
// there.
//
// The threads of a block are fibers on one thread of the host. A block runs until all its threads
// are done or wait for each other. What would hang a GPU or be undefined there ends the process,
// and says where each thread waits. Block memory begins as NaN. With a seed, blocks and threads run
// in another order.
//   plain       logic, barriers, shuffles; threads that never wait share one fiber
//   asan, ubsan errors of memory, block memory included
//   tsan        races of kernels: each thread is a fiber of the sanitizer, and only barriers, warp
//               operations and the end of the launch order them. simt.cpp is then compiled without
//               the sanitizer, with TROUPE_SIMT_TSAN: its own memory belongs to no thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#define __device__
#define __global__

#pragma GCC visibility push(default)

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
// Of the thread that runs.
extern thread_local constinit dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace troupe::simt {

struct Place {
  const char* file = nullptr;
  int line = 0;
};

struct Launch {
  dim3 grid, block;
  std::uint64_t seed = 0;  // 0: in order
};
// Calls body(args) as each thread of the grid. One launch at a time on each thread of the host.
void run(const Launch& launch, void (*body)(const void* args), const void* args);

enum class WarpOp : std::uint8_t { shuffle, sync };
// All lanes of `mask` meet. What each of them brought, by lane; until the next meeting.
const std::uint64_t* meet_warp(unsigned mask, WarpOp op, std::uint64_t value, Place at);
void meet_block(Place at);
// The block's variable of that key; the same for all its threads.
void* block_memory(const void* key, std::size_t bytes);
int lane();
// What a GPU has instructions for, and clang 14 no type. Rounded to the nearest.
float float_of_half(std::uint16_t bits);
std::uint16_t half_of_float(float x);

template <class T>
T shuffle(unsigned mask, T value, int from, Place at) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = meet_warp(mask, WarpOp::shuffle, bits, at)[from & 31];
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace troupe::simt

#pragma GCC visibility pop

inline void __syncthreads(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  troupe::simt::meet_block({file, line});
}
inline void __syncwarp(unsigned mask = ~0u, const char* file = __builtin_FILE(),
                       int line = __builtin_LINE()) {
  troupe::simt::meet_warp(mask, troupe::simt::WarpOp::sync, 0, {file, line});
}
// CUDA has it of numbers, and of no integers that are smaller than int.
template <class T>
requires std::is_arithmetic_v<T>
auto __shfl_xor_sync(unsigned mask, T value, int bits, int = 32,
                     const char* file = __builtin_FILE(), int line = __builtin_LINE())
    -> decltype(+value) {
  return troupe::simt::shuffle(mask, +value, troupe::simt::lane() ^ bits, {file, line});
}

namespace troupe::device {

// A variable of the block, as `__shared__ A a` is on a GPU; Id tells several of one type apart.
template <class A, int Id = 0>
A& block_shared() {
  static char key;
  return *static_cast<A*>(simt::block_memory(&key, sizeof(A)));
}

}  // namespace troupe::device
