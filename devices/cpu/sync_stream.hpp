// SyncStream: a stream whose work runs on the calling thread.
#pragma once

#include <mutex>

#include "devices/host_stream.hpp"

namespace troupe {

// Work runs before enqueue returns, one at a time; work may enqueue more, which runs at once.
// After a failure nothing runs any more, and every ticket given out has a sequence: status() says
// what failed.
class SyncStream final : public HostStream {
 public:
  explicit SyncStream(const DeviceName& device) : device_(device) {}

  std::uint32_t id() const override { return 0; }
  Ticket enqueue(std::function<Status()> work) override;
  Ticket mark() override { return last(); }  // all before is over
  void wait(Ticket) override {}              // of this device, hence done or failed before
  Ticket last() const override;
  Status status() const;

 private:
  const DeviceName& device_;
  mutable std::recursive_mutex mutex_;
  Status failure_;
  std::uint64_t issued_ = 0;
};

}  // namespace troupe
