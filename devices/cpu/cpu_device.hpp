// The CPU devices: with threads, on the caller, and step by step for simulations.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "devices/device.hpp"

namespace troupe {

struct CpuOptions {
  int threads = 0;             // lanes; 0: one per processor this process may use
  std::size_t memory_cap = 0;  // bytes handed out at a time; 0: no limit
  // Runs first on every lane, for libraries with settings per thread. With one, no thread that
  // lends itself takes a lane's place.
  std::function<void()> on_lane_start;
};

// Lanes are threads of its own, or such that lend themselves (LentThread); memory is a recycling
// arena, the stream is synchronous: work runs before enqueue returns, and only a failure leaves a
// ticket whose sequence is not 0. Its destructor runs all bursts launched before and must not run
// on a lane.
std::unique_ptr<Device> make_cpu_device(DeviceName name, CpuOptions options = {});

// No threads: launch runs the burst before it returns, and the chunks of kernels run in order. A
// burst launched while another runs is run by that other's thread when it ends: bursts never
// overlap, and a burst that launches one does not recurse.
std::unique_ptr<Device> make_inline_device(DeviceName name, std::size_t memory_cap = 0);

// A CPU whose bursts run when a test or a simulation says so, on its thread.
class SimDevice : public Device {
 public:
  // Runs the oldest burst that was launched and not run; false when there is none.
  virtual bool run_one() = 0;
  virtual std::size_t pending() const = 0;
};
std::unique_ptr<SimDevice> make_sim_device(DeviceName name, std::size_t memory_cap = 0);

}  // namespace troupe
