// LentThread: a waiting thread that serves as one of a device's lanes.
#pragma once

#include <cstdint>

#include "core/function_ref.hpp"

namespace troupe {

namespace detail {
class LanePool;
}

// While it lives, its thread can take the place of a sleeping lane: the first burst of the thread
// on a device with a sleeping lane does not wake the lane, but waits for work(), where this thread
// runs it. Waking an idle CPU, and this thread again for the answer, costs more than a short step.
// The device never has more lanes than usual, and bursts still start in the order of their launch.
//
// Bursts of the thread are those with the name that it waits for, whichever thread launches them,
// and nameless ones (NamedBursts) that it launches. Only one device takes the thread, the first
// that can. Devices without lanes, or with CpuOptions::on_lane_start, launch as usual.
//
// Used only by the thread that made it, which must not wait for the burst elsewhere between its
// launch and work(), and while the device lives. Kernels run on the thread's stack, which must have
// the usual size.
class LentThread {
 public:
  LentThread();
  ~LentThread();  // gives the lane back
  LentThread(const LentThread&) = delete;
  LentThread& operator=(const LentThread&) = delete;

  // Call before the launch. 0: only for bursts that it launches itself.
  void wait_for(std::uint64_t name) { waits_for_ = name; }

  // Runs the bursts of this thread and helps other lanes with their kernels, like a lane. Gives the
  // lane back when done() is true, after 50 us without work, or when the next burst is not the
  // thread's. Returns true if it was idle for those 50 us.
  bool work(FunctionRef<bool()> done);

 private:
  friend class detail::LanePool;
  void give_back();
  static thread_local LentThread* current;

  LentThread* const outer_;           // of the same thread, in which a kernel waits for a step
  detail::LanePool* pool_ = nullptr;  // set while it has a lane
  int lane_ = 0;                      // of pool_
  std::uint64_t waits_for_ = 0;
};

// While it lives, bursts launched by its thread have that name: a number of their run.
class NamedBursts {
 public:
  explicit NamedBursts(std::uint64_t name);
  ~NamedBursts();
  NamedBursts(const NamedBursts&) = delete;
  NamedBursts& operator=(const NamedBursts&) = delete;

 private:
  friend class detail::LanePool;
  static thread_local std::uint64_t current;

  const std::uint64_t outer_;
};

}  // namespace troupe
