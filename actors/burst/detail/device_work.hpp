// The work of a step on an asynchronous device, and values on their way between memory spaces.
#pragma once

#include <cstdint>

#include "actors/burst/detail/holders.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/detail/tickets.hpp"

namespace troupe::burst {

// Issues kernels and copies of one step on its device, and waits for their tickets where the host
// is to touch what they make.
//
// Kernels of one device follow each other on its stream and need no wait; what leaves the device
// does, and so does a source of a copy in host memory. A value goes into the memory space where its
// readers expect it. On a synchronous device nothing waits and nothing is copied.
//
// Owned by the step; used by the burst in flight, or between bursts.
class DeviceWork {
 public:
  // All arguments live as long as this.
  DeviceWork(const LoadedPlan& program, Progress& progress, Tickets& tickets, Holders& memory,
             Failure& failure);

  // True when the node has to wait for one of its inputs (from `first_input` on, or only those in
  // host memory); it is visited again when that one is done. A list is there whatever becomes of
  // its elements: with `host_only` nobody waits for these.
  bool park_unless_done(std::uint32_t node, std::uint16_t first_input, bool host_only) {
    return program_.asynchronous() && park(node, first_input, host_only);
  }
  // After a node was refused memory: true when it is visited again as soon as other work of this
  // step is done, since what was let go is free only then. False for another failure, or when there
  // is no such work.
  bool park_for_memory(std::uint32_t node, const Status& failure);

  // Roles kernel (of an asynchronous device) and copy.
  void run_kernel(std::uint32_t node);
  void run_copy(std::uint32_t node);

  // Puts a tensor from outside into a slot, in the memory space that its readers expect. `node` is
  // blamed where a copy fails. resource_exhausted where there is no memory for it.
  Status place(std::uint32_t node, std::uint32_t slot, Tensor tensor);
  // Whether it is worth moving what is in a slot to host memory, for a list to hold it there: it is
  // large, nobody else holds it, and the device is nearly full.
  bool leaves_device(std::uint32_t slot) const;
  // A copy there. Complete when its ticket is, and then so is what came before on the device.
  Expected<Slot> copy_on_host(std::uint32_t node, const Tensor& value);

 private:
  bool park(std::uint32_t node, std::uint16_t first_input, bool host_only);
  void push_from_device(std::uint32_t node);
  void copy_list(std::uint32_t node);
  Expected<Tensor> list_on_host(std::uint32_t node, const Tensor& list, Ticket& last);
  Ticket ticket_of_outputs(const LoadedPlan::Node& node, Ticket before);
  Ticket copy(std::uint32_t node, const Tensor& from, const Tensor& to);

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Device& device_;
  Progress& progress_;
  Tickets& tickets_;
  Holders& memory_;
  Failure& failure_;
};

}  // namespace troupe::burst
