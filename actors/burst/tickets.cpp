// Asynchronous devices: what is issued is not done. Kernels of the device follow each other on its
// stream and need no wait; what the host touches waits for its ticket, which a burst hands back.
#include <algorithm>

#include "actors/burst/detail/step.hpp"
#include "core/list.hpp"

namespace troupe {

StepState::State::StreamView& StepState::State::view(std::uint32_t stream) {
  for (StreamView& v : streams)
    if (v.stream == stream) return v;
  return streams.emplace_back(StreamView{.stream = stream});
}

std::uint32_t StepState::State::input_slot(std::uint32_t node, std::uint32_t k) const {
  return program->input_slots()[nodes[node].first_input + k];
}

bool StepState::State::done(const Ticket& ticket) {
  return ticket.complete() || ticket.sequence <= view(ticket.stream).complete;
}

// True when the node has to wait for one of its inputs (from `first_input` on, or only those in
// host memory); it is visited again when that one is done. A list is there whatever becomes of its
// elements: with `host_only` nobody waits for these.
bool StepState::State::park_unless_done(std::uint32_t i, std::uint16_t first_input,
                                        bool host_only) {
  if (!program->asynchronous()) return false;
  const LoadedPlan::Node& node = nodes[i];
  for (std::uint32_t k = first_input; k < node.inputs; ++k) {
    std::uint32_t slot = program->input_slots()[node.first_input + k];
    if (host_only && (program->plan().slots[slot].space != MemorySpace::host ||
                      slots[slot].tensor.dtype() == DType::list))
      continue;
    if (done(slots[slot].ticket)) continue;
    wait_for(slots[slot].ticket, i);
    return true;
  }
  return false;
}

void StepState::State::wait_for(Ticket ticket, std::uint32_t node) {
  for (OpenWait& wait : waits)
    if (wait.open && wait.ticket.stream == ticket.stream &&
        wait.ticket.sequence == ticket.sequence) {
      if (node != kNoNode) wait.nodes.push_back(node);
      return;
    }
  burst->waits.push_back({first_wait + std::uint32_t(waits.size()), ticket});
  waits.push_back({ticket, {}, true});
  if (node != kNoNode) waits.back().nodes.push_back(node);
}

void StepState::State::issue_kernel(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  if ((node.flags & LoadedPlan::kPushes) && leaves_device(input_slot(i, 1))) return issue_push(i);
  if (park_unless_done(i, 0, true)) return;
  Stream& stream = device.stream();
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    const Ticket& ticket = slots[program->input_slots()[node.first_input + k]].ticket;
    if (ticket.stream != stream.id() && !done(ticket)) stream.wait(ticket);
  }
  const Ticket before = stream.last();
  KernelContext ctx = context(i);
  Status ran = result_of(*node.kernel, ctx);
  if (!ran.ok() && stream.last() == before && park_for_memory(i, ran)) return;
  if (!ran.ok()) return fail(i, ran);
  const Ticket ticket = ticket_of_outputs(node, before);
  for (std::uint32_t k = 0; k < node.outputs; ++k) slots[node.first_slot + k].ticket = ticket;
  issued_at(i, ticket, before.sequence);
  finish(i, false);
}

// What was let go is free once the work that uses it is done: a node that finds no memory has to
// wait as long as there is some of this step's. It is visited again when that is done.
bool StepState::State::park_for_memory(std::uint32_t i, const Status& failure) {
  if (failure.code() != Code::resource_exhausted) return false;
  for (const StreamView& v : streams)
    if (v.complete < v.last && v.failed == 0) {
      wait_for({v.stream, v.last}, i);
      return true;
    }
  return false;
}

// Is it worth moving what is in the slot to host memory, for a list to hold it there? Small values
// take little, and what others go on holding (a variable that each iteration reads) would only be
// there once more.
bool StepState::State::leaves_device(std::uint32_t slot) const {
  constexpr std::size_t kLarge = 4096;
  constexpr double kNearlyFull = 0.7;
  const Tensor& value = slots[slot].tensor;
  const std::size_t memory_size = device.memory_size();
  return memory_size > 0 && value.buffer() && value.space() == MemorySpace::device &&
         value.bytes() >= kLarge && (value.unique() || program->made_by_kernel(slot)) &&
         double(device.bytes_in_use()) > kNearlyFull * double(memory_size);
}

// A copy of it there. Complete when the ticket is, and then so is what came before on the device.
Expected<Slot> StepState::State::copy_on_host(std::uint32_t node, const Tensor& value) {
  Slot out;
  TROUPE_TRY(out.tensor, Tensor::make(value.dtype(), value.shape(), memory_in(MemorySpace::host)));
  out.ticket = copy(node, value, out.tensor);
  return out;
}

// A push of a value that leaves the device. The one before has left by then, or the device would be
// full of what is to leave it; other readers have the value where it is.
void StepState::State::issue_push(std::uint32_t i) {
  if (park_unless_done(i, 0, false)) return;
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t slot = input_slot(i, 1);
  auto moved = copy_on_host(i, slots[slot].tensor);
  if (!moved.ok()) return fail(i, moved.status());
  const Slot here = std::exchange(slots[slot], std::move(moved).value());
  const Ticket ticket = slots[slot].ticket;
  KernelContext ctx = context(i);
  Status ran = result_of(*node.kernel, ctx);
  slots[slot] = here;
  if (!ran.ok()) return fail(i, ran);
  slots[node.first_slot].ticket = ticket;
  finish(i, false);
}

// A kernel that issued nothing (Shape, Identity) has outputs that are done when its inputs are.
Ticket StepState::State::ticket_of_outputs(const LoadedPlan::Node& node, Ticket before) {
  Stream& stream = device.stream();
  const Ticket after = stream.last();
  if (!after.complete() && after != before) return after;
  bool elsewhere = false;
  Ticket newest;
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    const Ticket& ticket = slots[program->input_slots()[node.first_input + k]].ticket;
    if (done(ticket)) continue;
    elsewhere |= ticket.stream != stream.id();
    if (newest.sequence < ticket.sequence) newest = ticket;
  }
  return elsewhere ? stream.enqueue([] { return ok_status(); }) : newest;
}

void StepState::State::issued_at(std::uint32_t node, Ticket ticket, std::uint64_t before,
                                 Ticket follows) {
  if (ticket.complete()) return;
  StreamView& v = view(ticket.stream);
  if (ticket.sequence <= v.last) return;
  v.last = ticket.sequence;
  issued.push_back({ticket, node, before, follows});
}

void StepState::State::issue_copy(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t from = program->input_slots()[node.first_input];
  Slot& to = slots[node.first_slot];
  const MemorySpace space = program->plan().slots[node.first_slot].space;
  if (program->asynchronous() && slots[from].tensor.dtype() == DType::list) return issue_list(i);
  if (!program->asynchronous() || slots[from].tensor.space() == space) {
    to = take(from);
    return finish(i, false);
  }
  // The device reads host memory only after its own streams' work, so a host source must be there.
  if (space == MemorySpace::device && park_unless_done(i, 0, false)) return;
  const Tensor& source = slots[from].tensor;
  auto made = Tensor::make(source.dtype(), source.shape(), memory_in(space));
  if (!made.ok()) {
    if (!park_for_memory(i, made.status())) fail(i, made.status());
    return;
  }
  to.tensor = std::move(made).value();
  to.ticket = copy(i, source, to.tensor);
  finish(i, false);
}

// A list that leaves the device: its elements are copied to host memory, where they are not there.
// What the list has of there must have arrived, since its ticket is of whatever came last.
void StepState::State::issue_list(std::uint32_t i) {
  if (park_unless_done(i, 0, false)) return;
  const LoadedPlan::Node& node = nodes[i];
  const std::uint32_t from = program->input_slots()[node.first_input];
  Ticket last;
  auto made = list_on_host(i, slots[from].tensor, last);
  if (!made.ok()) {
    if (!park_for_memory(i, made.status())) fail(i, made.status());
    return;
  }
  Slot& to = slots[node.first_slot];
  to.tensor = std::move(made).value();
  to.ticket = last;
  finish(i, false);
}

Expected<Tensor> StepState::State::list_on_host(std::uint32_t node, const Tensor& list,
                                                Ticket& last) {
  List there;
  Status status;
  list_in(list).for_each([&](const Tensor& element) {
    if (!status.ok()) return;
    Expected<Tensor> copied = element;
    if (element.dtype() == DType::list) {
      copied = list_on_host(node, element, last);
    } else if (element.buffer() && element.space() == MemorySpace::device) {
      auto slot = copy_on_host(node, element);
      copied = slot.ok() ? Expected<Tensor>(slot->tensor) : Expected<Tensor>(slot.status());
      if (slot.ok() && !slot->ticket.complete()) last = slot->ticket;
    }
    if (copied.ok())
      there.push(std::move(copied).value());
    else
      status = copied.status();
  });
  if (!status.ok()) return status;
  return list_tensor(std::move(there));
}

Allocator& StepState::State::memory_in(MemorySpace space) {
  if (space == MemorySpace::host)
    return kernel_place.host_memory ? *kernel_place.host_memory : device.host_allocator();
  return kernel_place.memory ? *kernel_place.memory : device.allocator();
}

// A copy follows what the device's stream was given before, and fails with it: by another step,
// too, whose work is then to be looked at.
Ticket StepState::State::copy(std::uint32_t node, const Tensor& from, const Tensor& to) {
  const Ticket before = device.stream().last();
  const Ticket ticket = device.copy(from, to);
  if (ticket.complete()) return ticket;
  const bool elsewhere = before.stream != ticket.stream;
  if (elsewhere) {
    StreamView& v = view(before.stream);
    v.last = std::max(v.last, before.sequence);
  }
  issued_at(node, ticket, ticket.sequence - 1, elsewhere ? before : Ticket{});
  return ticket;
}

// The elements of a list that another process sent, which nobody else has, count as the step's.
Expected<Tensor> StepState::State::adopt_elements(Tensor tensor) {
  if (!memory || !tensor.unique()) return tensor;
  List& list = list_in(tensor);
  for (std::int64_t i = 0; i < list.size(); ++i) {
    Tensor element = list.get(i);
    if (!element.buffer()) continue;
    list.set(i, Tensor());  // which lets go of it
    if (element.dtype() == DType::list) {
      TROUPE_TRY(element, adopt_elements(std::move(element)));
    } else {
      TROUPE_TRY(element, (host_memory ? host_memory : memory)->adopt(std::move(element)));
    }
    list.set(i, std::move(element));
  }
  return tensor;
}

// Puts a tensor from outside into a slot, in the memory space that its readers expect.
Status StepState::State::place(std::uint32_t node, std::uint32_t slot, Tensor tensor) {
  Slot& to = slots[slot];
  to.ticket = {};
  const bool upload = program->asynchronous() && tensor.defined() &&
                      program->plan().slots[slot].space == MemorySpace::device &&
                      tensor.space() == MemorySpace::host;
  if (!upload) {
    if (memory && tensor.defined()) {
      TROUPE_TRY(tensor, (host_memory ? host_memory : memory)->adopt(std::move(tensor)));
    }
    to.tensor = std::move(tensor);
    return {};
  }
  TROUPE_TRY(to.tensor,
             Tensor::make(tensor.dtype(), tensor.shape(), memory_in(MemorySpace::device)));
  to.ticket = copy(node, tensor, to.tensor);
  return {};
}

// Whether all that the step issued is done; asks for what is not.
bool StepState::State::device_idle() {
  bool idle = true;
  for (std::size_t s = 0; s < streams.size(); ++s) {
    StreamView& v = streams[s];
    if (v.complete >= v.last) continue;
    idle = false;
    // While a failure is being traced back, the waits of that search are the ones to answer.
    if (v.failed == 0) wait_for({v.stream, v.last}, kNoNode);
  }
  return idle;
}

void StepState::State::handle(WaitAnswer& answer) {
  const std::uint32_t index = answer.wait - first_wait;
  if (index >= waits.size() || !waits[index].open) return;  // of an earlier step
  waits[index].open = false;
  const Ticket ticket = waits[index].ticket;
  std::vector<std::uint32_t> parked = std::move(waits[index].nodes);
  if (answer.status.ok())
    for (const Issued& work : issued)
      if (work.ticket.stream == ticket.stream && work.ticket.sequence <= ticket.sequence &&
          !work.follows.complete()) {
        StreamView& before = view(work.follows.stream);
        before.complete = std::max(before.complete, work.follows.sequence);
      }
  StreamView& v = view(ticket.stream);
  if (answer.status.ok()) {
    v.complete = std::max(v.complete, ticket.sequence);
  } else {
    v.failed = v.failed == 0 ? ticket.sequence : std::min(v.failed, ticket.sequence);
  }
  if (v.failed != 0) return find_failure(v, answer.status);
  if (failing()) return;
  for (std::uint32_t node : parked) visit(node);
}

// A stream that fails reports it for every later ticket: the node to blame is the first one whose
// ticket failed, found by halving what lies between the known good and the known bad. It is not to
// blame when the stream had failed before the node's own work: in an earlier step, or in one that
// uses the device at the same time.
void StepState::State::find_failure(StreamView& v, const Status& failure) {
  if (v.complete >= v.last) return;  // found already
  if (!failure.ok()) v.failure = failure;
  limit = 0;
  std::vector<Issued> suspects;
  for (const Issued& work : issued)
    if (work.ticket.stream == v.stream && work.ticket.sequence > v.complete &&
        work.ticket.sequence <= v.failed)
      suspects.push_back(work);
  if (suspects.size() > 1) return wait_for(suspects[(suspects.size() - 1) / 2].ticket, kNoNode);
  if (suspects.size() == 1 && suspects[0].before > v.complete)
    return wait_for({v.stream, suspects[0].before}, kNoNode);
  v.complete = v.last;  // the rest of the stream failed with it
  if (suspects.empty()) return fail_with_stream(v);
  fail(suspects[0].node, v.failure);
}

// No node of this step takes the place of this cause.
void StepState::State::fail_with_stream(const StreamView& v) {
  limit = failed_node = 0;
  if (aborted) return;
  status = v.failure.in("in other work, after which nothing runs on stream " +
                        std::to_string(v.stream) + " of " + program->plan().device);
}

}  // namespace troupe
