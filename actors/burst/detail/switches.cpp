#include "actors/burst/detail/switches.hpp"

namespace troupe::burst {
namespace {

// The live output of a Switch: 0 if the predicate is false, 1 if it is true; of SwitchN the one
// with that index, or the last.
Expected<std::uint32_t> side_taken(const Tensor& selector, std::uint32_t outputs) {
  if (selector.elements() != 1) return invalid_argument("the predicate or index must be one value");
  std::int64_t index = 0;
  if (selector.dtype() == DType::bool_ && outputs == 2)
    index = *selector.data<bool>() ? 1 : 0;
  else if (selector.dtype() == DType::i32)
    index = *selector.data<std::int32_t>();
  else if (selector.dtype() == DType::i64)
    index = *selector.data<std::int64_t>();
  else
    return invalid_argument("the predicate must be one bool");
  return index < 0 || index >= outputs ? outputs - 1 : std::uint32_t(index);
}

}  // namespace

Switches::Switches(const LoadedPlan& program, Progress& progress, DeviceWork& work,
                   Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      progress_(progress),
      work_(work),
      failure_(failure) {}

void Switches::run_switch(std::uint32_t i) {
  if (work_.park_unless_done(i, 1, false)) return;
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t* in = program_.input_slots().data() + node.first_input;
  auto side = side_taken(progress_.slot(in[1]).tensor, node.outputs);
  if (!side.ok()) return failure_.add(i, side.status());
  const std::uint32_t taken = node.first_slot + *side;
  for (std::uint32_t slot = node.first_slot; slot < node.first_slot + node.outputs; ++slot)
    if (slot != taken) progress_.mark_dead(slot);
  progress_.slot(taken) = progress_.take(in[0]);
  progress_.release_inputs(node);
  if (progress_.readers(taken) == 0) progress_.slot(taken) = {};
  progress_.complete_with_dead_outputs(node);
}

void Switches::run_merge(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t* in = program_.input_slots().data() + node.first_input;
  std::uint32_t live = 0, chosen = 0;
  for (std::uint32_t k = node.inputs; k-- > 0;) {
    const Slot& slot = progress_.slot(in[k]);
    if (slot.dead || !slot.tensor.defined()) continue;
    ++live;
    chosen = k;
  }
  if (live > 1) return failure_.add(i, invalid_argument("Merge: two inputs are live"));
  progress_.set_taken(i, chosen);
  if (live == 0) return progress_.finish(i, true);
  progress_.slot(node.first_slot) = progress_.take(in[chosen]);
  if (node.outputs > 1)
    if (Status placed = work_.place(i, node.first_slot + 1, Tensor::scalar(std::int32_t(chosen)));
        !placed.ok())
      return failure_.add(i, placed);
  progress_.finish(i, false);
}

}  // namespace troupe::burst
