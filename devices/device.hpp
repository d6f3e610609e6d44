// Device: memory, streams, lanes. The whole interface; devices/fake is the example to copy.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "core/buffer.hpp"
#include "core/name.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "devices/lanes.hpp"

namespace troupe {

class Kernel;  // devices/kernel.hpp

// Stands for work issued on a stream. Sequence 0 is complete, as are all tickets of a CPU. Later
// work on the same stream needs no wait; other streams wait on the ticket.
struct Ticket {
  std::uint32_t stream = 0;
  std::uint64_t sequence = 0;
  bool complete() const { return sequence == 0; }
  friend bool operator==(const Ticket&, const Ticket&) = default;
};

// An in-order queue of device work. Owned by its device. A failure is permanent: the failed ticket
// and all later ones of the stream report it.
class Stream {
 public:
  virtual ~Stream() = default;
  virtual std::uint32_t id() const = 0;
  // A ticket for everything issued before, and for the tickets that it has to wait for.
  virtual Ticket mark() = 0;
  // Later work of this stream starts after `ticket` (of any stream of this device). When that has
  // failed, so does this stream.
  virtual void wait(Ticket ticket) = 0;
  // The ticket of the last issued work; complete if a synchronous stream has not failed.
  virtual Ticket last() const = 0;
};

// One device of this process. Made by main (or a worker), passed down, outlives all actors.
// Functions may be called from any thread unless stated otherwise, and do not block.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceName& name() const = 0;  // full
  virtual MemorySpace space() const = 0;       // of its tensors
  virtual Allocator& allocator() = 0;          // memory in space()
  // Host memory that this device copies from and to; on a CPU its own arena.
  virtual Allocator& host_allocator() = 0;
  // The stream for kernels of bursts.
  virtual Stream& stream() = 0;

  // Called before the first call of these kernels, once for each; those of a plan together.
  // Compiles what they need, which may take seconds: not on a lane.
  virtual Status prepare(std::span<Kernel* const>) { return ok_status(); }

  // Runs `burst` exactly once, on a lane, also while shutting down. Bursts start in the order of
  // their launch when lanes become free. The burst gets the lanes for its kernels' chunks.
  virtual void launch(std::function<void(Lanes&)> burst) = 0;
  // The same for an update of variables, for which other runs wait: it starts before bursts that
  // were launched earlier, and need not wait for those that run.
  virtual void launch_update(std::function<void(Lanes&)> update) { launch(std::move(update)); }

  // Copies between host memory and this device's memory. dst must have the size of src. A copy to
  // the host is done after all earlier work of stream(), and after earlier copies to the host; one
  // to the device after what used the memory of dst before, and perhaps before other work. The
  // device keeps references to both until the ticket is complete.
  virtual Ticket copy(const Tensor& src, Tensor dst) = 0;

  // Calls `done` exactly once, with ok or the failure of the ticket's work; on a thread of the
  // device, or before returning if the ticket is complete.
  virtual void on_complete(Ticket ticket, std::function<void(Status)> done) = 0;

  // Whether the first ticket that fails is that of the work to blame. If not, all of which it was
  // not known that it was done fails with it.
  virtual bool locates_failures() const { return true; }

  // Why nothing runs on this device any more as long as this process lives; ok: it works.
  virtual Status failure() const { return ok_status(); }
  // Of an error for want of its memory: what is in use, and by what. Empty: it does not know.
  virtual std::string memory_text() const { return {}; }

  // How much memory in space() there is; 0: as much as anybody asks for.
  virtual std::size_t memory_size() const { return 0; }
  // Bytes in use now and at peak, for limits and reports.
  virtual std::size_t bytes_in_use() const = 0;
  virtual std::size_t peak_bytes() const = 0;
  virtual void reset_peak() = 0;
};

}  // namespace troupe
