// The resources of a task, by where and what they are.
#pragma once

#include <caf/fwd.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/interfaces.hpp"
#include "actors/resources/resource.hpp"
#include "actors/worker/dataset_functions.hpp"
#include "actors/worker/resource_ids.hpp"
#include "devices/device.hpp"
#include "serialization/file.hpp"

namespace troupe {

// Makes what plans name, on the device where they name it, once; ends it when its container is
// dropped. Part of the worker's state. Variables and datasets are made here; every other kind is
// what find_resource_kind() says.
class ResourceTable {
 public:
  struct Place {
    std::string name;  // of the device
    Device* device = nullptr;
    DeviceActor lanes;
  };
  struct Found {
    ResourceId id;  // of a dataset: none
    ServiceActor actor;
    bool outside = false;             // ResourceKind::outside
    std::shared_ptr<void> held = {};  // of a dataset, which ends with the last who has it
  };
  // Variables that a step declares, by container.
  using Declared = std::map<ResourceId, std::pair<VariablesActor, DeclareVariables>>;

  struct Options {  // see WorkerOptions
    TaskId task{};
    std::shared_ptr<void> alive;
    bool own_threads = true;        // for what reads and writes files
    std::uint64_t step_memory = 0;  // of what their functions hold
    FileSystem* files = nullptr;
    std::function<std::uint64_t()> random;
  };
  explicit ResourceTable(Options options) : options_(std::move(options)), ids_(options_.task) {}

  // A dataset is the one of its name with all that its node and functions say, on every device.
  Found dataset(const ResourceRef& ref, const LoadedFunctions& functions,
                caf::actor_system& system);
  // Anything else. not_found for a kind that the process does not have, invalid_argument when the
  // node does not describe one of its kind, or another than one of that name, already_exists when
  // its id is another resource's; all with the node.
  Expected<Found> find(const ResourceRef& ref, const Place& place, const WorkerActor& worker,
                       caf::actor_system& system, Declared& declared);

  // Those with a part in transactions, by ResourceId::hash.
  const std::map<std::uint64_t, ResourceActor>& participants() const { return participants_; }

  // Ends those of these containers. Nobody asks them for anything any more. Their ids.
  std::vector<ResourceId> drop(const std::vector<std::string>& containers);
  void end_all();

 private:
  struct Made {
    ResourceId id;
    ResourceRef ref;  // the first that named it
    ResourceActor actor;
    bool outside = false;
  };
  struct Container {
    ResourceId id;
    VariablesActor actor;
  };
  class Dataset;
  using Key = std::pair<std::string, std::string>;  // device, container

  Expected<Found> variable(const ResourceRef& ref, const Place& place, const WorkerActor& worker,
                           caf::actor_system& system, Declared& declared);
  Expected<Found> made(const ResourceRef& ref, const Place& place, const WorkerActor& worker,
                       caf::actor_system& system);
  const Options options_;
  ResourceIds ids_;
  std::map<Key, Container> containers_;
  std::map<std::pair<Key, std::string>, Made> made_;          // and kind and name
  std::map<std::uint64_t, std::weak_ptr<Dataset>> datasets_;  // by a hash of all that they are
  std::map<std::uint64_t, ResourceActor> participants_;
};

}  // namespace troupe
