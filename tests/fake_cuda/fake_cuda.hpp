// A CUDA driver without a GPU, for tests: build/fake-cuda/libcuda.so.1 exports the functions of
// devices/cuda/driver.hpp. Each stream is a thread. Device addresses fault when the host touches
// them. Kernels are those of ops/device/, compiled by g++ for the emulated GPU (emulated.hpp), and
// host functions that a test registers by name.
//
// TROUPE_FAKE_CUDA says what it is like, e.g. "devices=2,delay_us=200,seed=7":
//   devices=N           how many GPUs there are (default 1)
//   version=N           what cuDriverGetVersion tells (default 13000)
//   architecture=N      of the GPUs (default 90: sm_90)
//   stub=1              cuInit refuses as NVIDIA's stub library does
//   memory_mb=N         of each GPU (default 1024)
//   delay_us=N seed=N   three of four work items begin up to so much later (default 0)
//   order=N             seed of the order of a kernel's blocks and threads (default 0: one by one)
//   slow=NAME slow_us=N launches of kernels whose names begin so take so much longer, and copies to
//                       the host ("download") or from it ("upload")
//   out_of_memory_at=N  the N-th allocation of device memory finds none, once
//   out_of_memory_from=N
//                       that one and all after it
//   no_pinned=1         there is no pinned host memory
//   launch_error_at=N error=E
//                       the N-th launch that runs fails with E (default 700), and everything after
//   once=FILE           the faults above happen only in the process that makes this file
//   check=1             work on different streams that touches the same memory, and is not in
//   order,
//                       is reported, and memory of another GPU; kernels are seen to touch where
//                       their arguments point to, or say what they touch
// Those from memory_mb on are read when a GPU's context is first retained, the others whenever
// asked for.
#pragma once

#include <cstddef>

#include "devices/cuda/driver_types.hpp"

namespace troupe::fake_cuda {

// One launch, as a kernel's host function sees it. Device addresses among the arguments have been
// replaced by ones that it can touch.
struct Launched {
  unsigned grid[3], block[3];
  const void* const* arguments;
};
using Run = cuda::Result (*)(const Launched&);

// What tests find in the library, by these names.
//
// troupe_fake_register: a kernel with arguments of these sizes. Its module is an ELF file, or the
// text "fake image", which holds every registered kernel.
using Register = void (*)(const char* name, Run run, const std::size_t* sizes, int count);
// troupe_fake_count: "pageable_copies": of host memory that is not pinned, since the library was
// opened; "timed": events that were recorded with timing; "most_queued": items of work that streams
// had at most at a time, and "most_blocks": that a launch had, both since they were last asked for;
// "contexts", "streams", "events", "modules", "blocks", "pinned": how many
// there are now.
using Count = std::size_t (*)(const char* what);
// troupe_fake_reports: what `check` has found since the last call, a line each; of the calling
// thread's until its next call.
using Reports = const char* (*)();
// troupe_fake_touch: called by a kernel's host function, with an address as it sees it.
using Touch = void (*)(const void* data, std::size_t bytes, int write);

inline constexpr char kImage[] = "fake image";

}  // namespace troupe::fake_cuda
