// The CPU devices: with threads, and on the calling thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "devices/device.hpp"

namespace troupe {

struct CpuOptions {
  int threads = 0;             // lanes; 0: one per processor this process may use
  std::size_t memory_cap = 0;  // bytes in use at a time; 0: no limit
  // Runs first on every lane, for libraries with settings per thread. If set, no LentThread takes a
  // lane's place.
  std::function<void()> on_lane_start;
};

// Lanes are its own threads, or a LentThread. Memory is a recycling arena. The stream is
// synchronous: work runs before enqueue returns, and only a failure leaves a ticket whose sequence
// is not 0. Its destructor runs all launched bursts and must not be called on a lane.
std::unique_ptr<Device> make_cpu_device(DeviceName name, CpuOptions options = {});

// No threads: launch runs the burst before it returns, and the chunks of kernels run in order. A
// burst launched while another runs is run by that other's thread afterwards: bursts never overlap,
// and a burst that launches one does not recurse.
std::unique_ptr<Device> make_inline_device(DeviceName name, std::size_t memory_cap = 0);

}  // namespace troupe
