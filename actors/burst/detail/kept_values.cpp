#include "actors/burst/detail/kept_values.hpp"

#include <utility>

#include "core/list.hpp"

namespace troupe::burst {

KeptValues::KeptValues(const LoadedPlan& program, Progress& progress, DeviceWork& work,
                       Calls& calls, Failure& failure)
    : program_(program),
      nodes_(program.nodes()),
      progress_(progress),
      work_(work),
      calls_(calls),
      failure_(failure) {}

void KeptValues::run_keep(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t in = progress_.input_slot(i, 0);
  if (progress_.slot(in).dead) return progress_.finish(i, true);
  if (work_.park_unless_done(i, 0, false)) return;
  Tensor list = progress_.take(in).tensor;
  if (list.dtype() != DType::list)
    return failure_.add(i, invalid_argument("it is pushed onto no list"));
  if (!list.unique()) list = list_tensor(list_in(std::as_const(list)));
  auto value = value_to_keep(i);
  if (!value.ok()) return failure_.add(i, value.status());
  list_in(list).push(std::move(value->tensor));
  progress_.slot(node.first_slot) = {.tensor = std::move(list), .ticket = value->ticket};
  progress_.finish(i, false);
}

Expected<Slot> KeptValues::value_to_keep(std::uint32_t keep) {
  const std::uint32_t s = progress_.input_slot(keep, 1);
  const Slot& slot = progress_.slot(s);
  if (slot.dead) return Slot{};
  if (program_.asynchronous() && work_.leaves_device(s))
    return work_.copy_on_host(keep, slot.tensor);
  calls_.count_kept(slot.tensor);
  return progress_.take(s);
}

void KeptValues::run_kept(std::uint32_t i) {
  const LoadedPlan::Node& node = nodes_[i];
  const std::uint32_t in = progress_.input_slot(i, 0);
  if (work_.park_unless_done(i, 0, false)) return;
  const Tensor& given = progress_.slot(in).tensor;
  if (given.dtype() != DType::list || list_in(given).empty())
    return failure_.add(i, invalid_argument("there is no list to take a value off"));
  const std::uint32_t rest = node.first_slot, taken = rest + 1;
  Tensor value = list_in(given).get(list_in(given).size() - 1);
  const bool dead = !value.defined();
  if (progress_.readers(taken) != 0 && !dead)
    if (Status placed = work_.place(i, taken, std::move(value)); !placed.ok()) {
      if (!work_.park_for_memory(i, placed)) failure_.add(i, placed);
      return;
    }
  Tensor list = progress_.take(in).tensor;
  if (!list.unique()) list = list_tensor(list_in(std::as_const(list)));
  list_in(list).pop();
  progress_.release_inputs(node);
  if (dead) progress_.mark_dead(taken);
  if (progress_.readers(rest) != 0) progress_.slot(rest) = {.tensor = std::move(list)};
  progress_.complete_with_dead_outputs(node);
}

}  // namespace troupe::burst
