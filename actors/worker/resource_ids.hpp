// The ids of a task's resources.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Assigns ids to the resources of a task. An id depends on what the resource is, not on when it was
// made: processes that load steps in different orders agree. Part of the worker's state.
class ResourceIds {
 public:
  using Hash = std::uint64_t (*)(std::string_view device, const ResourceName& name);

  explicit ResourceIds(TaskId task, Hash hash = resource_hash) : task_(task), hash_(hash) {}

  // Equal for the same resource. already_exists, naming both, if another resource has that id.
  Expected<ResourceId> take(const std::string& device, const ResourceName& name);
  // The resource was dropped.
  void give_back(const ResourceId& id) { taken_.erase(id.hash); }

 private:
  using Known = std::pair<std::string, ResourceName>;  // device, name

  const TaskId task_;
  const Hash hash_;
  std::map<std::uint64_t, Known> taken_;
};

}  // namespace troupe
