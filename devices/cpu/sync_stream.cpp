#include "devices/cpu/sync_stream.hpp"

#include <string>

namespace troupe {

Ticket SyncStream::enqueue(std::function<Status()> work) {
  std::lock_guard lock(mutex_);
  const std::uint64_t sequence = ++issued_;
  if (failure_.ok()) {
    Status status = work();
    // Work that this work enqueued may have failed first.
    if (!status.ok() && failure_.ok())
      failure_ =
          status.in("in work " + std::to_string(sequence) + " of stream 0 on " + device_.text());
  }
  return failure_.ok() ? Ticket{} : Ticket{0, sequence};
}

Ticket SyncStream::last() const {
  std::lock_guard lock(mutex_);
  return failure_.ok() ? Ticket{} : Ticket{0, issued_};
}

Status SyncStream::status() const {
  std::lock_guard lock(mutex_);
  return failure_;
}

}  // namespace troupe
