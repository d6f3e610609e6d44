#include "actors/burst/detail/device_work.hpp"

#include <utility>

#include "core/list.hpp"
#include "devices/kernel_call.hpp"

namespace troupe::burst {

DeviceWork::DeviceWork(const LoadedPlan& program, Progress& progress, Tickets& tickets,
                       Holders& memory, Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      device_(program.device()),
      progress_(progress),
      tickets_(tickets),
      memory_(memory),
      failure_(failure) {}

bool DeviceWork::park(std::uint32_t i, std::uint16_t first_input, bool host_only) {
  const LoadedPlan::Node& node = nodes_[i];
  for (std::uint32_t k = first_input; k < node.inputs; ++k) {
    const std::uint32_t s = program_.input_slots()[node.first_input + k];
    const Slot& slot = progress_.slot(s);
    if (host_only &&
        (program_.plan().slots[s].space != MemorySpace::host || slot.tensor.dtype() == DType::list))
      continue;
    if (tickets_.done(slot.ticket)) continue;
    tickets_.wait_for(slot.ticket, i);
    return true;
  }
  return false;
}

bool DeviceWork::park_for_memory(std::uint32_t i, const Status& failure) {
  if (failure.code() != Code::resource_exhausted) return false;
  const Ticket other = tickets_.unfinished();
  if (other.complete()) return false;
  tickets_.wait_for(other, i);
  return true;
}

void DeviceWork::run_kernel(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  if ((node.flags & LoadedPlan::kPushes) && leaves_device(progress_.input_slot(i, 1)))
    return push_from_device(i);
  if (park_unless_done(i, 0, true)) return;
  Stream& stream = device_.stream();
  for (std::uint32_t k = 0; k < node.inputs; ++k)
    follow(progress_.slot(progress_.input_slot(i, k)));
  const Ticket before = stream.last();
  const NamedWork work = named(i);
  KernelContext ctx = progress_.context(i);
  Status ran = call_kernel(*node.kernel, ctx);
  if (!ran.ok() && work.issued() == 0 && park_for_memory(i, ran)) return;
  if (!ran.ok()) return failure_.add(i, ran);
  const Ticket after = stream.last();
  const bool issued = !after.complete() && after != before;
  const Ticket ticket = issued ? after : ticket_of_inputs(node);
  for (std::uint32_t k = 0; k < node.outputs; ++k) {
    const std::uint32_t s = node.first_slot + k;
    Slot& slot = progress_.slot(s);
    // A list stands for its elements, which may be on the device.
    const bool made_here = !issued && program_.plan().slots[s].space == MemorySpace::host &&
                           slot.tensor.dtype() != DType::list;
    slot.ticket = made_here ? Ticket{} : ticket;
  }
  tickets_.issued(i, ticket, before.sequence);
  progress_.finish(i, false);
}

// What is issued next uses that value: it comes after the copy that makes it, which may be under
// way on another stream.
void DeviceWork::follow(const Slot& slot) {
  Stream& stream = device_.stream();
  if (slot.ticket.stream != stream.id() && !tickets_.done(slot.ticket)) stream.wait(slot.ticket);
}

// Moving small values saves little. A value that others still hold (a variable that each iteration
// reads) would then exist twice.
bool DeviceWork::leaves_device(std::uint32_t slot) const {
  constexpr std::size_t kLarge = 4096;
  constexpr double kNearlyFull = 0.7;
  const Tensor& value = progress_.slot(slot).tensor;
  const std::size_t memory_size = device_.memory_size();
  return memory_size > 0 && value.buffer() && value.space() == MemorySpace::device &&
         value.bytes() >= kLarge && (value.unique() || program_.made_by_kernel(slot)) &&
         double(device_.bytes_in_use()) > kNearlyFull * double(memory_size);
}

Expected<Slot> DeviceWork::copy_on_host(std::uint32_t node, const Tensor& value) {
  const NamedWork work = named(node);
  Slot out;
  TROUPE_TRY(out.tensor,
             Tensor::make(value.dtype(), value.shape(), memory_.allocator(MemorySpace::host)));
  out.ticket = copy(node, value, out.tensor);
  return out;
}

// Pushes a value that leaves the device. Waits for the push before: else the device would fill up
// with values that are about to leave. Other readers use the value on the device.
void DeviceWork::push_from_device(std::uint32_t i) {
  if (park_unless_done(i, 0, false)) return;
  const LoadedPlan::Node& node = nodes_[i];
  Slot& slot = progress_.slot(progress_.input_slot(i, 1));
  auto moved = copy_on_host(i, slot.tensor);
  if (!moved.ok()) return failure_.add(i, moved.status());
  const Slot here = std::exchange(slot, std::move(moved).value());
  const Ticket ticket = slot.ticket;
  KernelContext ctx = progress_.context(i);
  Status ran = call_kernel(*node.kernel, ctx);
  slot = here;
  if (!ran.ok()) return failure_.add(i, ran);
  progress_.slot(node.first_slot).ticket = ticket;
  progress_.finish(i, false);
}

// What a kernel that issued nothing (Identity) has on the device is done when its inputs are. What
// it has in host memory (Shape) the host has made, of inputs that were done.
Ticket DeviceWork::ticket_of_inputs(const LoadedPlan::Node& node) {
  Stream& stream = device_.stream();
  bool elsewhere = false;
  Ticket newest;
  for (std::uint32_t k = 0; k < node.inputs; ++k) {
    const Ticket& ticket = progress_.slot(program_.input_slots()[node.first_input + k]).ticket;
    if (tickets_.done(ticket)) continue;
    elsewhere |= ticket.stream != stream.id();
    if (newest.sequence < ticket.sequence) newest = ticket;
  }
  return elsewhere ? stream.mark() : newest;
}

void DeviceWork::run_copy(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t from = program_.input_slots()[node.first_input];
  Slot& to = progress_.slot(node.first_slot);
  const MemorySpace space = program_.plan().slots[node.first_slot].space;
  const Tensor& source = progress_.slot(from).tensor;
  if (program_.asynchronous() && source.dtype() == DType::list) return copy_list(i);
  if (!program_.asynchronous() || source.space() == space) {
    to = progress_.take(from);
    return progress_.finish(i, false);
  }
  // A copy waits only for the device's own streams, so a source in host memory must be done.
  if (space == MemorySpace::device && park_unless_done(i, 0, false)) return;
  follow(progress_.slot(from));
  const NamedWork work = named(i);
  auto made = Tensor::make(source.dtype(), source.shape(), memory_.allocator(space));
  if (!made.ok()) {
    if (!park_for_memory(i, made.status())) failure_.add(i, made.status());
    return;
  }
  to.tensor = std::move(made).value();
  to.ticket = copy(i, source, to.tensor);
  progress_.finish(i, false);
}

// A list that leaves the device: elements that are not in host memory are copied there. The list
// must be done first, since its new ticket is only that of the last copy.
void DeviceWork::copy_list(std::uint32_t i) {
  if (park_unless_done(i, 0, false)) return;
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t from = program_.input_slots()[node.first_input];
  Ticket last;
  auto made = list_on_host(i, progress_.slot(from).tensor, last);
  if (!made.ok()) {
    if (!park_for_memory(i, made.status())) failure_.add(i, made.status());
    return;
  }
  progress_.slot(node.first_slot) = {.tensor = std::move(made).value(), .ticket = last};
  progress_.finish(i, false);
}

Expected<Tensor> DeviceWork::list_on_host(std::uint32_t node, const Tensor& list, Ticket& last) {
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

// A copy may fail with what was issued to the device's stream before, also by other steps: so this
// work is followed, too. A copy to the host is done after all of it. One to the device may be done
// before, and says nothing of it.
Ticket DeviceWork::copy(std::uint32_t node, const Tensor& from, const Tensor& to) {
  const Ticket before = device_.stream().last();
  const Ticket ticket = device_.copy(from, to);
  if (ticket.complete()) return ticket;
  const bool elsewhere = before.stream != ticket.stream;
  const bool follows = elsewhere && to.space() == MemorySpace::host;
  if (elsewhere) tickets_.follow(before);
  tickets_.issued(node, ticket, ticket.sequence - 1, follows ? before : Ticket{});
  return ticket;
}

Status DeviceWork::place(std::uint32_t node, std::uint32_t slot, Tensor tensor) {
  Slot& to = progress_.slot(slot);
  to.ticket = {};
  const bool upload = program_.asynchronous() && tensor.defined() &&
                      program_.plan().slots[slot].space == MemorySpace::device &&
                      tensor.space() == MemorySpace::host;
  if (!upload) {
    TROUPE_TRY(to.tensor, memory_.adopt(std::move(tensor)));
    return {};
  }
  const std::uint32_t maker = program_.producer(slot);
  const std::string_view name =
      maker == kNoNode ? std::string_view("a feed") : program_.plan().info[maker].name;
  const NamedWork work(name, run_, trace_);
  TROUPE_TRY(to.tensor,
             Tensor::make(tensor.dtype(), tensor.shape(), memory_.allocator(MemorySpace::device)));
  to.ticket = copy(node, tensor, to.tensor);
  return {};
}

}  // namespace troupe::burst
