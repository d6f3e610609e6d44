// The numbers of a task's resources.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Gives each resource of a task its id, which says what the resource is and not when it was
// made: processes that load steps in different orders agree. Part of the worker's state.
class ResourceIds {
 public:
  using Hash = std::uint64_t (*)(std::string_view device, const ResourceName& name);

  explicit ResourceIds(TaskId task, Hash hash = resource_hash) : task_(task), hash_(hash) {}

  // The same for the same resource. already_exists, naming both, when another one has that id.
  Expected<ResourceId> take(const std::string& device, const ResourceName& name);
  // The resource is gone.
  void give_back(const ResourceId& id) { taken_.erase(id.hash); }

 private:
  using Known = std::pair<std::string, ResourceName>;  // on which device

  const TaskId task_;
  const Hash hash_;
  std::map<std::uint64_t, Known> taken_;
};

}  // namespace troupe
