#include "actors/master/step_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

Status check_fetch(const StepShape::Fetch& wanted, const std::vector<Fetched>& fetches) {
  auto is_it = [&](const Fetched& f) { return f.index == wanted.index; };
  auto at = std::find_if(fetches.begin(), fetches.end(), is_it);
  if (at == fetches.end() || !at->value.defined())
    return internal_error(fmt::format("value {} is missing", wanted.index));
  const Tensor& value = at->value;
  if (value.dtype() != wanted.dtype || !wanted.shape.accepts(value.shape()))
    return internal_error(fmt::format("value {} is {}{}, not {}{}", wanted.index,
                                      dtype_name(value.dtype()), value.shape().text(),
                                      dtype_name(wanted.dtype), wanted.shape.text()));
  return ok_status();
}

// Checks the number of elements used of each dataset: all of an ordinary one, whole rounds of an
// open one.
Status check_elements(const StepShape& step, const StepShape::Partition& partition,
                      const std::vector<std::uint64_t>& used) {
  if (used.size() != partition.datasets.size())
    return internal_error(fmt::format("elements of {} datasets instead of {}", used.size(),
                                      partition.datasets.size()));
  for (std::size_t i = 0; i < used.size(); ++i) {
    const DatasetPlaces::Share& share = step.datasets[partition.datasets[i]];
    const bool possible = share.open ? used[i] % share.elements == 0 && used[i] <= kMostElements
                                     : used[i] == share.elements;
    if (!possible)
      return internal_error(
          fmt::format("{} elements of dataset '{}' used", used[i], share.dataset.name));
  }
  return ok_status();
}

}  // namespace

Status check_done(const StepShape& step, const PartitionDone& message) {
  if (message.partition >= step.partitions.size())
    return internal_error(
        fmt::format("partition {} of {}", message.partition, step.partitions.size()));
  const StepShape::Partition& partition = step.partitions[message.partition];
  for (std::size_t i = 0; i < message.writes.size(); ++i) {
    const ResourceId& resource = message.writes[i].resource;
    if (!step.may_write) return internal_error("writes of a step that writes nothing");
    if (resource.task != partition.task)
      return internal_error(fmt::format("writes to a resource of task {}", number(resource.task)));
    if (i > 0 && resource <= message.writes[i - 1].resource)
      return internal_error(fmt::format("resource {:x} is named twice", resource.hash));
  }
  if (!message.status.ok()) return ok_status();
  TROUPE_TRY(check_elements(step, partition, message.elements));
  for (const StepShape::Fetch& fetch : partition.fetches)
    TROUPE_TRY(check_fetch(fetch, message.fetches));
  if (message.fetches.size() != partition.fetches.size())
    return internal_error(
        fmt::format("{} values instead of {}", message.fetches.size(), partition.fetches.size()));
  return ok_status();
}

}  // namespace troupe
