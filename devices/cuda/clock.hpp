// GpuClock: when the GPU did its work, by the host's clock.
#pragma once

#include <cstdint>
#include <memory>

#include "devices/cuda/context.hpp"

namespace troupe::cuda {

// Tells host times of events. They are measured from an event of which the host knows when it
// happened: it was between two looks at the clock, and the shortest of some tries counts. It is
// made anew each second, since two clocks drift apart and differences are floats.
//
// Guarded by the mutex of the streams.
class GpuClock {
 public:
  // An event, and when it happened by Trace::now_ns().
  class Zero {
   public:
    Zero(ContextPtr context, EventHandle event, std::int64_t host_ns)
        : context_(std::move(context)), event_(event), host_ns_(host_ns) {}
    ~Zero();
    Zero(const Zero&) = delete;
    Zero& operator=(const Zero&) = delete;
    // When that event happened, which was made with timing and is over.
    Expected<std::int64_t> host_ns(EventHandle event) const;

   private:
    const ContextPtr context_;
    const EventHandle event_;
    const std::int64_t host_ns_;
  };

  explicit GpuClock(ContextPtr context) : context_(std::move(context)) {}
  ~GpuClock();
  GpuClock(const GpuClock&) = delete;
  GpuClock& operator=(const GpuClock&) = delete;

  // The newest, for events that are recorded from now on. On a stream of its own, so that it waits
  // for no work.
  Expected<std::shared_ptr<const Zero>> zero();

 private:
  Expected<std::shared_ptr<const Zero>> measure();

  const ContextPtr context_;
  StreamHandle stream_ = nullptr;  // made when it is first needed
  std::shared_ptr<const Zero> zero_;
  std::int64_t measured_ns_ = 0;
};

}  // namespace troupe::cuda
