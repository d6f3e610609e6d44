// The resources of a task, by device, container, kind and name.
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
#include "core/trace.hpp"
#include "devices/device.hpp"
#include "serialization/file.hpp"

namespace troupe {

// Makes each resource that plans name once, on its device, and ends it when its container is
// dropped. Makes variables and datasets itself; all other kinds come from find_resource_kind().
// Part of the worker's state.
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
    std::shared_ptr<void> held = {};  // of a dataset, which ends with its last holder
  };
  // Variables that a step declares, by container.
  using Declared = std::map<ResourceId, std::pair<VariablesActor, DeclareVariables>>;

  struct Options {  // see WorkerOptions
    TaskId task{};
    std::shared_ptr<void> alive;
    bool own_threads = true;        // for resources that use files
    std::uint64_t step_memory = 0;  // limit for functions of datasets
    FileSystem* files = nullptr;
    std::function<std::uint64_t()> random;
    std::shared_ptr<Trace> trace;  // of this process; null: nothing is recorded
  };
  explicit ResourceTable(Options options) : options_(std::move(options)), ids_(options_.task) {}

  // Equal datasets (name, container, node and functions) are one, for all devices.
  Found dataset(const ResourceRef& ref, const LoadedFunctions& functions,
                caf::actor_system& system);
  // Any other resource. not_found for an unknown kind; invalid_argument if the node does not
  // describe such a resource, or contradicts the one of that name; already_exists if another
  // resource has its id.
  Expected<Found> find(const ResourceRef& ref, const Place& place, const WorkerActor& worker,
                       caf::actor_system& system, Declared& declared);

  // The resources that take part in transactions, by ResourceId::hash.
  const std::map<std::uint64_t, ResourceActor>& participants() const { return participants_; }

  // Ends the resources of these containers, and returns their ids. REQUIRES: nobody uses them.
  std::vector<ResourceId> drop(const std::vector<std::string>& containers);
  void end_all();

 private:
  struct Made {
    ResourceId id;
    ResourceRef ref;  // the first that was loaded
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
  std::map<std::pair<Key, std::string>, Made> made_;          // by key, and kind and name
  std::map<std::uint64_t, std::weak_ptr<Dataset>> datasets_;  // by a hash of their definition
  std::map<std::uint64_t, ResourceActor> participants_;
};

}  // namespace troupe
