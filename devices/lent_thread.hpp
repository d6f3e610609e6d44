// LentThread: a thread with nothing to do but wait is, while it waits, one of a device's lanes.
#pragma once

#include "troupe/core/function_ref.hpp"

namespace troupe {

namespace detail {
class LanePool;
}

// While one lives, its thread lends itself. What it launches on a device where a lane sleeps does
// not wake that lane, but waits for work(), where this thread takes the lane's place: waking an
// idle CPU, and this one again for the answer, costs more than a short step. Never is there a lane
// more than the device has, and bursts start in the order of their launch as before.
//
// One device takes the thread, the first it launches on that can. Devices without lanes, or whose
// lanes run a hook of their own first (CpuOptions::on_lane_start), launch as ever. For the thread
// that made it, which must not use it from inside a burst it runs.
class LentThread {
 public:
  LentThread();
  ~LentThread();  // gives the lane back
  LentThread(const LentThread&) = delete;
  LentThread& operator=(const LentThread&) = delete;

  // Runs what this thread has launched and what follows from it there, and helps other lanes with
  // their kernels, as a lane does. Gives the lane back once done() is true, when there has been
  // nothing to do for 50 us, and when what is next is somebody else's and another lane can run it.
  // False when there was no lane to have.
  bool work(FunctionRef<bool()> done);

 private:
  friend class detail::LanePool;
  void give_back();
  static thread_local LentThread* current;

  LentThread* const outer_;           // of the same thread: it runs a kernel that waits for a step
  detail::LanePool* pool_ = nullptr;  // while it has a lane
  int lane_ = 0;                      // of pool_
};

}  // namespace troupe
