// HostStream: a stream whose work is done by threads of this process.
#pragma once

#include <functional>

#include "devices/device.hpp"

namespace troupe {

// The streams of CPUs and of the fake device.
class HostStream : public Stream {
 public:
  // Queues `work` after everything issued before; returns its ticket. A synchronous device runs it
  // before returning; then the ticket is complete, or has a sequence and on_complete tells at once
  // why the work failed. After a failure work is dropped instead of run.
  virtual Ticket enqueue(std::function<Status()> work) = 0;
};

}  // namespace troupe
