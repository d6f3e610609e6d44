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

// Work gets its number when it is issued. An event is recorded only when somebody asks for a ticket
// (another stream, a callback, a copy whose memory is to be let go): one that was recorded later
// than that does as well. A thread waits for the events in their order, lets go of what their work
// held and calls back.
//
// An error of the GPU is known by the first event that tells of it. All tickets that were not
// complete then fail: which work it was, nobody knows.
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
  // Issues one call of the driver. When the driver refuses it, so it does the ticket.
  Ticket issue(const char* call, Issue call_driver);
  // The same, and calls `after` when the work is done, or lets it go when it fails. What `after`
  // holds is there until then.
  Ticket issue(const char* call, Issue call_driver, std::function<void()> after);
  // The same, but what the driver refuses is returned, and nothing has happened. An error of work
  // that was issued before, which any call may tell, is none of this call.
  Status try_issue(const char* call, Issue call_driver);
  void wait_for(Ticket ticket);
  // The last work, including what is waited for.
  Ticket mark_locked();
  // The last thing that was issued has an event, so that somebody learns when it is done.
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
  std::vector<EventHandle> events_;  // nobody uses
  bool waits_ = false;               // for a ticket, and nothing was issued since
  bool refused_ = false;             // something was, and will be known when all before is done
  std::thread thread_;
};

}  // namespace troupe::cuda
