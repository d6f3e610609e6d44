// SyncStream: a stream whose work runs on the calling thread.
#pragma once

#include <mutex>

#include "devices/device.hpp"

namespace troupe {

// Work runs before enqueue returns, one item at a time; work may enqueue more, which runs
// immediately. After a failure nothing runs any more, and every ticket has a sequence: status() is
// the failure.
class SyncStream final : public Stream {
 public:
  explicit SyncStream(const DeviceName& device) : device_(device) {}

  std::uint32_t id() const override { return 0; }
  Ticket enqueue(std::function<Status()> work) override;
  void wait(Ticket) override {}  // of this device, so already done or failed
  Ticket last() const override;
  Status status() const;

 private:
  const DeviceName& device_;
  mutable std::recursive_mutex mutex_;
  Status failure_;
  std::uint64_t issued_ = 0;
};

}  // namespace troupe
