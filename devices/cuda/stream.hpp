// CudaStream: a stream of a GPU, whose tickets are events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/function_ref.hpp"
#include "core/trace.hpp"
#include "devices/cuda/clock.hpp"
#include "devices/cuda/context.hpp"
#include "devices/detail/progress.hpp"
#include "devices/device.hpp"
#include "devices/named_work.hpp"

namespace troupe::cuda {

class CudaStream;

// What the streams of one device share. One mutex for all of them: a call of the driver takes a few
// microseconds, and the driver has a lock of its own.
struct Streams {
  Streams(DeviceName device, ContextPtr gpu, bool spinning, bool waiting)
      : name(std::move(device)),
        context(std::move(gpu)),
        spin(spinning),
        synchronous(waiting),
        clock(context) {}

  const DeviceName name;
  const ContextPtr context;
  const bool spin;         // before sleeping, while an event has not happened
  const bool synchronous;  // CudaOptions::synchronous
  std::mutex mutex;        // guards what follows, and all of the streams
  GpuClock clock;
  std::condition_variable changed;
  std::vector<CudaStream*> all;  // by id
  bool stopping = false;
};

// A stream of a GPU and the thread that waits for it. Owned by the device.
//
// Work gets a number when it is issued. An event is recorded only when somebody needs one: another
// stream that waits, a callback, a copy that holds memory. An event recorded later than the ticket
// serves, too. The thread waits for the events in order, releases what their work held and calls
// back.
//
// An error of the GPU shows when an event or a call reports it. All tickets that are not complete
// then fail, since nobody knows which work caused it.
class CudaStream final : public Stream {
 public:
  using Issue = FunctionRef<Result(StreamHandle)>;
  using Lock = std::unique_lock<std::mutex>;

  // A stream without priority, that never waits for the legacy stream. `line` names its line of
  // timelines.
  static Expected<std::unique_ptr<CudaStream>> make(Streams& streams, std::string line);
  ~CudaStream() override;  // after streams.stopping, and end() of all streams
  // Its thread looks at all streams, also after those have failed.
  void end();

  std::uint32_t id() const override { return id_; }
  Ticket mark() override;
  void wait(Ticket ticket) override;
  Ticket last() const override;
  void on_complete(std::uint64_t sequence, std::function<void(Status)> done);

  // With the mutex held:
  //
  // Issues one call of the driver. If the driver refuses it, the ticket fails.
  Ticket issue(const char* call, Issue call_driver);
  // The same, and calls `after` when the work is done. What `after` holds is kept until then, or
  // until the work has failed.
  Ticket issue(const char* call, Issue call_driver, std::function<void()> after);
  // The same, but returns the driver's refusal; the stream then goes on. An error of earlier work,
  // which any call may report, is not returned: it fails the tickets.
  Status try_issue(const char* call, Issue call_driver);
  void wait_for(Ticket ticket);
  // A ticket for the last work and for what is waited for.
  Ticket mark_locked();
  // Records an event for the last work, unless there is one, so that its end is noticed.
  void flush() {
    if (!progress_.reached(progress_.issued())) event_for(progress_.issued());
  }
  const detail::StreamProgress& progress() const { return progress_; }
  bool idle() const { return progress_.idle(); }
  // Why nothing that is issued will be done; ok: it will.
  Status failure() const;

 private:
  // An event, and what is to be done when it has happened.
  struct Pending {
    EventHandle event = nullptr;
    std::uint64_t sequence = 0;
    std::function<void()> after;
    Status refused;  // by the driver, of this number
  };

  // Work between two events with timing, which the node of that number did.
  struct Timed {
    EventHandle begin = nullptr, end = nullptr;
    std::uint64_t number = 0, run = 0;
    std::int64_t issued_ns = 0;
    std::string name;
    std::shared_ptr<Trace> trace;
    std::shared_ptr<const GpuClock::Zero> zero;
  };

  CudaStream(Streams& streams, StreamHandle handle, std::string line);
  Pending* event_for(std::uint64_t sequence);
  Pending* record(std::uint64_t sequence);
  const Status* refusal(std::uint64_t sequence) const;
  void refuse(Status status);
  void fail(Status status);
  bool dead() const { return progress_.failed() || refused_; }
  Result call_timed(const NamedWork* work, Issue call_driver);
  EventHandle record_time();
  void record_spans();
  void record_span(const Timed& first, const Timed& last);
  void run();
  void finish_front(Lock& lock, Result result);
  Result await(EventHandle event) const;
  Status in_work(Status status, std::uint64_t first, std::uint64_t last) const;

  Streams& streams_;
  const Context& context_;
  const std::uint32_t id_;
  const StreamHandle handle_;
  const std::string line_;
  detail::StreamProgress progress_;
  std::deque<Pending> pending_;         // in the order of their events
  std::vector<EventHandle> events_;     // unused ones
  std::deque<Timed> timed_;             // in the order of their issue
  std::vector<EventHandle> times_;      // unused ones with timing
  std::int64_t recorded_until_ns_ = 0;  // the end of the last span
  bool waits_ = false;                  // for a ticket, with nothing issued since
  bool refused_ = false;                // a number of pending_ is; nothing is issued behind it
  std::thread thread_;
};

}  // namespace troupe::cuda
