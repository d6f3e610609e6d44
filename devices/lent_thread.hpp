// LentThread: a thread with nothing to do but wait is, while it waits, one of a device's lanes.
#pragma once

#include <cstdint>

#include "core/function_ref.hpp"

namespace troupe {

namespace detail {
class LanePool;
}

// While one lives, its thread lends itself. The first burst that it launches for itself on a device
// where a lane sleeps wakes nobody, but waits for work(), where this thread takes the lane's place:
// waking an idle CPU, and this one again for the answer, costs more than a short step. Never is
// there a lane more than the device has, and bursts start in the order of their launch as before.
//
// For itself are bursts of the name that it waits for, whoever launches them, and of those without
// a name (NamedBursts) the ones that it launches. One device takes the thread, the first that can.
// Devices without lanes, or whose lanes run a hook of their own first (CpuOptions::on_lane_start),
// launch as ever.
//
// For the thread that made it, between launching and work() in no place where it waits for the
// burst, and while the device lives. Kernels run on its stack, which has to be as large as a
// thread's usually is.
class LentThread {
 public:
  LentThread();
  ~LentThread();  // gives the lane back
  LentThread(const LentThread&) = delete;
  LentThread& operator=(const LentThread&) = delete;

  // Before the launch. 0: only for what it launches itself.
  void wait_for(std::uint64_t name) { waits_for_ = name; }

  // Runs what is for this thread, and helps other lanes with their kernels, as a lane does. Gives
  // the lane back once done() is true, when there has been nothing to do for 50 us, and when the
  // next burst is somebody else's. True when it has waited so for those 50 us.
  bool work(FunctionRef<bool()> done);

 private:
  friend class detail::LanePool;
  void give_back();
  static thread_local LentThread* current;

  LentThread* const outer_;           // of the same thread: it runs a kernel that waits for a step
  detail::LanePool* pool_ = nullptr;  // while it has a lane
  int lane_ = 0;                      // of pool_
  std::uint64_t waits_for_ = 0;
};

// While one lives, what its thread launches is of that name: a number for the run it belongs to.
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
