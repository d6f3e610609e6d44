// The work of a step on an asynchronous device, and copies between memory spaces.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "actors/burst/detail/holders.hpp"
#include "actors/burst/detail/progress.hpp"
#include "actors/burst/detail/tickets.hpp"
#include "devices/named_work.hpp"

namespace troupe::burst {

// Issues the kernels and copies of one step on its device, and waits for their tickets before the
// host uses their results.
//
// Kernels of one device run in order on its stream and need no wait. A value that leaves the device
// needs one, and so does the source of a copy from host memory. A value is put into the memory
// space where its readers expect it. A synchronous device needs neither waits nor copies.
//
// Owned by the step; used by the burst in flight, or between bursts.
class DeviceWork {
 public:
  // All arguments live as long as this.
  DeviceWork(const LoadedPlan& program, Progress& progress, Tickets& tickets, Holders& memory,
             Failure& failure);

  // Starts a new step, of a run whose work is recorded in `trace`; null: it is not.
  void reset(std::uint64_t run, std::shared_ptr<Trace> trace) {
    run_ = run;
    trace_ = std::move(trace);
  }

  // True if the node must wait for one of its inputs from `first_input` on (with `host_only`, only
  // tensors in host memory); it is visited again when that input is done. With `host_only` a list
  // is not waited for: it exists even if its elements are not done.
  bool park_unless_done(std::uint32_t node, std::uint16_t first_input, bool host_only) {
    return program_.asynchronous() && park(node, first_input, host_only);
  }
  // After a node was refused memory: true if it is visited again when other work of this step is
  // done, since released memory is free only then. False for another failure, or if there is no
  // such work.
  bool park_for_memory(std::uint32_t node, const Status& failure);

  // Roles kernel (of an asynchronous device) and copy.
  void run_kernel(std::uint32_t node);
  void run_copy(std::uint32_t node);

  // Puts a tensor from outside into a slot, in the memory space that its readers expect. If a copy
  // fails, `node` fails. resource_exhausted if there is no memory for it.
  Status place(std::uint32_t node, std::uint32_t slot, Tensor tensor);
  // Whether a list should hold the slot's value in host memory: it is large, nobody else holds it
  // or a kernel made it, and the device is nearly full.
  bool leaves_device(std::uint32_t slot) const;
  // A copy in host memory. When its ticket is complete, so is all earlier work of the device.
  Expected<Slot> copy_on_host(std::uint32_t node, const Tensor& value);

 private:
  void follow(const Slot& slot);
  bool park(std::uint32_t node, std::uint16_t first_input, bool host_only);
  void push_from_device(std::uint32_t node);
  void copy_list(std::uint32_t node);
  Expected<Tensor> list_on_host(std::uint32_t node, const Tensor& list, Ticket& last);
  Ticket ticket_of_inputs(const LoadedPlan::Node& node);
  Ticket copy(std::uint32_t node, const Tensor& from, const Tensor& to);
  // What the thread gives to the device meanwhile is the node's.
  NamedWork named(std::uint32_t node) const {
    return NamedWork(program_.plan().info[node].name, run_, trace_);
  }

  const LoadedPlan& program_;
  const std::vector<LoadedPlan::Node>& nodes_;
  Device& device_;
  Progress& progress_;
  Tickets& tickets_;
  Holders& memory_;
  Failure& failure_;
  std::uint64_t run_ = 0;
  std::shared_ptr<Trace> trace_;
};

}  // namespace troupe::burst
