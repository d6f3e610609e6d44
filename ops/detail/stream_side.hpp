// How a CPU kernel is run where no step is: on a thread of the fake device's streams, or beside a
// GPU.
#pragma once

#include <numeric>
#include <vector>

#include "devices/kernel.hpp"

namespace troupe::detail {

// What the kernel sees of a device: heap memory, nothing else.
class StreamSide final : public Device {
 public:
  explicit StreamSide(const DeviceName& name) : name_(name) {}
  const DeviceName& name() const override { return name_; }
  MemorySpace space() const override { return MemorySpace::host; }
  Allocator& allocator() override { return heap_allocator(); }
  Allocator& host_allocator() override { return heap_allocator(); }
  Stream& stream() override { return unused<Stream&>(); }
  void launch(std::function<void(Lanes&)>) override { unused<void>(); }
  Ticket copy(const Tensor&, Tensor) override { return unused<Ticket>(); }
  void on_complete(Ticket, std::function<void(Status)>) override { unused<void>(); }
  std::size_t bytes_in_use() const override { return 0; }
  std::size_t peak_bytes() const override { return 0; }
  void reset_peak() override {}

 private:
  template <class R>
  [[noreturn]] static R unused() {
    TROUPE_CHECK(false, "a CPU kernel that runs aside uses memory and lanes only");
  }
  DeviceName name_;
};

// What the kernel makes of these inputs, none of which it writes into.
inline Expected<std::vector<Tensor>> compute_aside(Kernel& cpu, StreamSide& side,
                                                   const RandomState& random,
                                                   const std::vector<Tensor>& inputs,
                                                   std::size_t outputs) {
  InlineLanes lanes;
  std::vector<Slot> in(inputs.size()), out(outputs);
  for (std::size_t i = 0; i < in.size(); ++i) in[i].tensor = inputs[i];
  std::vector<std::uint32_t> slots(in.size());
  std::iota(slots.begin(), slots.end(), 0u);
  const KernelPlace place{.device = &side, .lanes = &lanes};
  KernelContext ctx({.slots = in.data(),
                     .input_slots = slots.data(),
                     .outputs = out.data(),
                     .inputs = std::uint16_t(in.size()),
                     .n_outputs = std::uint16_t(out.size()),
                     .place = &place,
                     .random = random});
  TROUPE_TRY(cpu.compute(ctx));
  std::vector<Tensor> made;
  for (Slot& slot : out) made.push_back(std::move(slot.tensor));
  return made;
}

}  // namespace troupe::detail
