// CudaStream: a stream of a GPU, whose tickets are events.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core/function_ref.hpp"
#include "devices/cuda/context.hpp"
#include "devices/detail/progress.hpp"
#include "devices/device.hpp"

namespace troupe::cuda {

class CudaStream;

// What the streams of one device share. One mutex for all of them: a call of the driver takes a few
// microseconds, and the driver has a lock of its own.
struct Streams {
  Streams(DeviceName device, ContextPtr gpu, bool spinning)
      : name(std::move(device)), context(std::move(gpu)), spin(spinning) {}

  const DeviceName name;
  const ContextPtr context;
  const bool spin;   // before sleeping, while an event has not happened
  std::mutex mutex;  // guards what follows, and all of the streams
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

  // A stream without priority, that never waits for the legacy stream.
  static Expected<std::unique_ptr<CudaStream>> make(Streams& streams);
  ~CudaStream() override;  // after streams.stopping

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

 private:
  // An event, and what is to be done when it has happened.
  struct Pending {
    EventHandle event = nullptr;
    std::uint64_t sequence = 0;
    std::function<void()> after;
    Status refused;  // by the driver, of this number
  };

  CudaStream(Streams& streams, StreamHandle handle);
  Pending* event_for(std::uint64_t sequence);
  Pending* record(std::uint64_t sequence);
  const Status* refusal(std::uint64_t sequence) const;
  void refuse(Status status);
  void fail(Status status);
  bool dead() const { return progress_.failed() || refused_; }
  void run();
  void finish_front(Lock& lock, Result result);
  Result await(EventHandle event) const;
  Status in_work(Status status, std::uint64_t first, std::uint64_t last) const;

  Streams& streams_;
  const Context& context_;
  const std::uint32_t id_;
  const StreamHandle handle_;
  detail::StreamProgress progress_;
  std::deque<Pending> pending_;      // in the order of their events
  std::vector<EventHandle> events_;  // unused ones
  bool waits_ = false;               // for a ticket, with nothing issued since
  bool refused_ = false;             // a number of pending_ is; nothing is issued behind it
  std::thread thread_;
};

}  // namespace troupe::cuda
