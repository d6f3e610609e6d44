// Device: memory, streams, lanes. The whole interface; devices/fake is the example to copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/buffer.hpp"
#include "core/name.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "devices/lanes.hpp"

namespace troupe {

// A promise that work issued on a stream will be done. Sequence 0 is done already: all of a CPU's
// tickets. Later work on the same stream needs no wait; another stream waits on the ticket.
struct Ticket {
  std::uint32_t stream = 0;
  std::uint64_t sequence = 0;
  bool complete() const { return sequence == 0; }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// An in-order queue of device work. Owned by its device. A failure is sticky: the ticket that
// failed and all later ones of the stream report it.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::uint32_t id() const = 0;
  // Queues `work` after everything issued before; returns its ticket. A synchronous device runs it
  // before returning; then the ticket is complete, or has a sequence and on_complete tells at once
  // why the work failed. After a failure work is dropped instead of run.
  virtual Ticket enqueue(std::function<Status()> work) = 0;
  // Later work of this stream starts after `ticket` (of any stream of this device). When that has
  // failed, so does this stream.
  virtual void wait(Ticket ticket) = 0;
  // The ticket of the last work issued; complete when there is none pending on a synchronous one.
  virtual Ticket last() const = 0;
};

// One device of this process. Made by main (or a worker), passed down, outlives all actors. All
// functions may be called from any thread unless they say otherwise, and none blocks.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceName& name() const = 0;  // full
  virtual MemorySpace space() const = 0;       // where its tensors live
  virtual Allocator& allocator() = 0;          // memory in space()
  // Host memory that this device copies from and to; the arena of lanes on a CPU.
  virtual Allocator& host_allocator() = 0;
  // The stream that kernels of ordinary bursts use.
  virtual Stream& stream() = 0;

  // Runs `burst` on a lane, bursts in the order of their launch as lanes become free. The burst
  // gets the lanes for its kernels' chunks. Exactly once, also while shutting down.
  virtual void launch(std::function<void(Lanes&)> burst) = 0;

  // Copies between host memory and this device's memory, after what its stream was given before.
  // dst must have the size of src. The source must stay alive until the ticket is complete: the
  // device keeps a reference on both.
  virtual Ticket copy(const Tensor& src, Tensor dst) = 0;

  // Calls `done` exactly once, on a thread of the device (or before returning when the ticket is
  // complete), with ok or the failure of the work behind the ticket.
  virtual void on_complete(Ticket ticket, std::function<void(Status)> done) = 0;

  // How much memory in space() there is; 0: as much as anybody asks for.
  virtual std::size_t memory_size() const { return 0; }
  // Bytes handed out now and at most, for limits and reports.
  virtual std::size_t bytes_in_use() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  virtual void reset_peak() = 0;
};

}  // namespace troupe
