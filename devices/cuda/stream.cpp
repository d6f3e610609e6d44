#include "devices/cuda/stream.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "devices/detail/spin.hpp"

namespace troupe::cuda {
namespace {

constexpr std::chrono::microseconds kSpin{50};

}  // namespace

Expected<std::unique_ptr<CudaStream>> CudaStream::make(Streams& streams, std::string line) {
  const Context& context = *streams.context;
  StreamHandle handle = nullptr;
  context.enter();
  TROUPE_TRY(
      context.check(context.driver().cuStreamCreateWithPriority(&handle, kStreamNonBlocking, 0),
                    "cuStreamCreate"));
  try {
    return std::unique_ptr<CudaStream>(new CudaStream(streams, handle, std::move(line)));
  } catch (...) {  // there is no thread for it
    context.driver().cuStreamDestroy_v2(handle);
    throw;
  }
}

CudaStream::CudaStream(Streams& streams, StreamHandle handle, std::string line)
    : streams_(streams),
      context_(*streams.context),
      id_(std::uint32_t(streams.all.size())),
      handle_(handle),
      line_(std::move(line)),
      progress_(id_) {
  std::lock_guard lock(streams_.mutex);
  thread_ = std::thread([this] { run(); });  // which waits for the mutex
  streams_.all.push_back(this);
}

void CudaStream::end() {
  if (thread_.joinable()) thread_.join();
}

CudaStream::~CudaStream() {
  end();
  context_.enter();
  for (const Timed& timed : timed_) times_.insert(times_.end(), {timed.begin, timed.end});
  timed_.clear();
  for (const EventHandle event : events_) context_.driver().cuEventDestroy_v2(event);
  for (const EventHandle event : times_) context_.driver().cuEventDestroy_v2(event);
  context_.driver().cuStreamDestroy_v2(handle_);
}

Ticket CudaStream::mark() {
  std::lock_guard lock(streams_.mutex);
  return mark_locked();
}

Ticket CudaStream::mark_locked() {
  if (!waits_ && !dead()) return progress_.last();
  waits_ = false;
  const Ticket ticket = progress_.issue();
  if (progress_.failed()) progress_.abandon({});
  return ticket;
}

Ticket CudaStream::last() const {
  std::lock_guard lock(streams_.mutex);
  return progress_.last();
}

void CudaStream::wait(Ticket ticket) {
  std::lock_guard lock(streams_.mutex);
  wait_for(ticket);
}

void CudaStream::wait_for(Ticket ticket) {
  if (ticket.complete() || ticket.stream == id_ || dead()) return;
  TROUPE_CHECK(ticket.stream < streams_.all.size(), "a ticket of another device");
  CudaStream& other = *streams_.all[ticket.stream];
  if (other.progress_.reached(ticket.sequence)) {
    Status status = other.progress_.status_of(ticket.sequence);
    return status.ok() ? void() : refuse(std::move(status));
  }
  if (const Status* refused = other.refusal(ticket.sequence)) return refuse(*refused);
  const Pending* awaited = other.event_for(ticket.sequence);
  if (!awaited) return refuse(other.progress_.failure());
  context_.enter();
  const Result result = context_.driver().cuStreamWaitEvent(handle_, awaited->event, 0);
  if (result != kSuccess) return refuse(context_.check(result, "cuStreamWaitEvent"));
  waits_ = true;
}

void CudaStream::on_complete(std::uint64_t sequence, std::function<void(Status)> done) {
  Lock lock(streams_.mutex);
  if (sequence <= progress_.issued() && !progress_.reached(sequence)) event_for(sequence);
  progress_.on_complete(lock, sequence, std::move(done));
}

Status CudaStream::try_issue(const char* call, Issue call_driver) {
  if (!dead()) {
    context_.enter();
    const NamedWork* work = NamedWork::current();
    Status status = context_.check(
        work && work->number() != 0 ? call_timed(work, call_driver) : call_driver(handle_), call);
    if (!status.ok() && record(progress_.issued())) return status;
    if (status.ok() && streams_.synchronous) {
      status = context_.check(context_.driver().cuStreamSynchronize(handle_), call);
      if (!status.ok()) {
        waits_ = false;
        progress_.issue();
        fail(status);
        return status;
      }
    }
  }
  waits_ = false;
  NamedWork::count_issued(id_);
  progress_.issue();
  if (progress_.failed()) progress_.abandon({});
  return ok_status();
}

// Without events, the work is done all the same, and is no span.
Result CudaStream::call_timed(const NamedWork* work, Issue call_driver) {
  auto zero = streams_.clock.zero();
  const std::int64_t issued_ns = Trace::now_ns();
  const EventHandle begin = zero.ok() ? record_time() : nullptr;
  const Result result = call_driver(handle_);
  const EventHandle end = begin && result == kSuccess ? record_time() : nullptr;
  if (!end) {
    if (begin) times_.push_back(begin);
    return result;
  }
  timed_.push_back({begin, end, work->number(), work->run(), issued_ns, std::string(work->name()),
                    work->trace(), std::move(zero).value()});
  return result;
}

// An event with timing that is now issued; null: there is none.
EventHandle CudaStream::record_time() {
  const Driver& driver = context_.driver();
  EventHandle event = nullptr;
  if (!times_.empty())
    event = times_.back(), times_.pop_back();
  else if (driver.cuEventCreate(&event, 0) != kSuccess)
    return nullptr;
  if (driver.cuEventRecord(event, handle_) == kSuccess) return event;
  times_.push_back(event);
  return nullptr;
}

// The spans of what is over: one for all that a node issued in a row.
void CudaStream::record_spans() {
  const Driver& driver = context_.driver();
  while (!timed_.empty()) {
    std::size_t count = 1;
    while (count < timed_.size() && timed_[count].number == timed_[0].number) ++count;
    if (driver.cuEventQuery(timed_[count - 1].end) != kSuccess) return;
    record_span(timed_[0], timed_[count - 1]);
    for (; count > 0; --count) {
      times_.insert(times_.end(), {timed_.front().begin, timed_.front().end});
      timed_.pop_front();
    }
  }
}

// Whatever the clocks say, nothing begins before it was issued or ends after the host knew of it,
// and what a stream does comes one after the other, although its clock was set anew between two of
// them.
void CudaStream::record_span(const Timed& first, const Timed& last) {
  if (!active(first.trace)) return;
  const auto begin = first.zero->host_ns(first.begin), end = last.zero->host_ns(last.end);
  if (!begin.ok() || !end.ok()) return;
  const std::int64_t to = std::min(std::max(*end, recorded_until_ns_), Trace::now_ns());
  const std::int64_t from = std::min(std::max({*begin, first.issued_ns, recorded_until_ns_}), to);
  recorded_until_ns_ = to;
  first.trace->track(line_).record({.name = first.name, .run = first.run}, from, to);
}

Status CudaStream::failure() const {
  if (progress_.failed()) return progress_.failure();
  for (const Pending& pending : pending_)
    if (!pending.refused.ok()) return pending.refused;
  return ok_status();
}

Ticket CudaStream::issue(const char* call, Issue call_driver) {
  if (Status status = try_issue(call, call_driver); !status.ok()) refuse(std::move(status));
  return {id_, progress_.issued()};
}

Ticket CudaStream::issue(const char* call, Issue call_driver, std::function<void()> after) {
  const Ticket ticket = issue(call, call_driver);
  if (dead()) return ticket;
  if (Pending* pending = record(ticket.sequence)) pending->after = std::move(after);
  return ticket;
}

// The event that tells that `sequence` is done, or null: everything has failed.
CudaStream::Pending* CudaStream::event_for(std::uint64_t sequence) {
  for (Pending& pending : pending_)
    if (pending.sequence >= sequence) return &pending;
  return record(progress_.issued());
}

CudaStream::Pending* CudaStream::record(std::uint64_t sequence) {
  const Driver& driver = context_.driver();
  context_.enter();
  EventHandle event = nullptr;
  Result result = kSuccess;
  if (!events_.empty())
    event = events_.back(), events_.pop_back();
  else
    result = driver.cuEventCreate(&event, kEventBlockingSync | kEventDisableTiming);
  if (result == kSuccess) result = driver.cuEventRecord(event, handle_);
  if (result != kSuccess) {
    if (event) events_.push_back(event);
    fail(context_.check(result, "cuEventRecord"));
    return nullptr;
  }
  pending_.push_back({event, sequence, {}, {}});
  streams_.changed.notify_all();
  return &pending_.back();
}

// Why `sequence` will fail, if that is known before it does.
const Status* CudaStream::refusal(std::uint64_t sequence) const {
  for (const Pending& pending : pending_)
    if (!pending.refused.ok() && pending.sequence <= sequence) return &pending.refused;
  return nullptr;
}

// A number whose work is not issued fails when everything before it is done, and all after it.
void CudaStream::refuse(Status status) {
  if (dead()) return;
  const Ticket ticket = progress_.issue();
  Pending* pending = record(ticket.sequence);
  if (!pending) return;
  pending->refused = in_work(std::move(status), ticket.sequence, ticket.sequence);
  refused_ = true;
}

// The GPU has failed, and will tell nothing any more.
void CudaStream::fail(Status status) {
  for (Pending& pending : pending_)
    if (pending.event) events_.push_back(pending.event);
  pending_.clear();
  for (const Timed& timed : timed_) times_.insert(times_.end(), {timed.begin, timed.end});
  timed_.clear();
  progress_.abandon(in_work(std::move(status), progress_.done() + 1, progress_.issued()));
  streams_.changed.notify_all();
}

void CudaStream::run() {
  context_.enter();
  Lock lock(streams_.mutex);
  for (;;) {
    streams_.changed.wait(
        lock, [&] { return !pending_.empty() || progress_.due() || streams_.stopping; });
    if (pending_.empty() && !progress_.due()) return;
    if (!pending_.empty()) {
      const EventHandle event = pending_.front().event;
      lock.unlock();
      const Result result = await(event);
      lock.lock();
      // Another thread's call of the driver may have told of a failure meanwhile.
      if (!pending_.empty() && pending_.front().event == event) finish_front(lock, result);
      streams_.changed.notify_all();
    }
    progress_.call_back(lock);
    streams_.changed.notify_all();
  }
}

void CudaStream::finish_front(Lock& lock, Result result) {
  if (result != kSuccess) return fail(context_.check(result, "cuEventSynchronize"));
  Pending done = std::move(pending_.front());
  pending_.pop_front();
  events_.push_back(done.event);
  lock.unlock();
  if (done.after) done.after();
  done.after = nullptr;
  lock.lock();
  // Of all streams: who waits for this one may be told of the others' work by it.
  for (CudaStream* stream : streams_.all) stream->record_spans();
  if (done.refused.ok()) return progress_.finish(done.sequence);
  progress_.finish(done.sequence - 1);
  for (Pending& pending : pending_) events_.push_back(pending.event);
  pending_.clear();
  progress_.abandon(std::move(done.refused));
}

// Spins first: being woken takes longer than most kernels.
Result CudaStream::await(EventHandle event) const {
  const Driver& driver = context_.driver();
  if (streams_.spin) {
    const auto until = std::chrono::steady_clock::now() + kSpin;
    do {
      const Result result = driver.cuEventQuery(event);
      if (result != kNotReady) return result;
      detail::relax();
    } while (std::chrono::steady_clock::now() < until);
  }
  return driver.cuEventSynchronize(event);
}

Status CudaStream::in_work(Status status, std::uint64_t first, std::uint64_t last) const {
  std::string which = "in work " + std::to_string(first);
  if (last > first)
    which = "in one of work " + std::to_string(first) + " to " + std::to_string(last);
  return status.in(which + " of stream " + std::to_string(id_) + " on " + streams_.name.text());
}

}  // namespace troupe::cuda
