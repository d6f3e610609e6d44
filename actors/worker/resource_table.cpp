#include "actors/worker/resource_table.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/exit_reason.hpp>
#include <caf/send.hpp>

#include "actors/resources/dataset_actor.hpp"
#include "actors/resources/resource_actor.hpp"
#include "actors/resources/variables_actor.hpp"
#include "actors/runtime/platform.hpp"
#include "core/hash.hpp"
#include "graph/node_hash.hpp"

namespace troupe {
namespace {

Expected<VariableSpec> variable_spec(const ResourceRef& ref) {
  auto dtype = ref.def.attrs.find("T"), shape = ref.def.attrs.find("shape");
  if (dtype == ref.def.attrs.end() || !dtype->second.get<DType>() || shape == ref.def.attrs.end() ||
      !shape->second.get<PartialShape>())
    return invalid_argument("node '" + ref.def.name + "' does not describe a variable");
  return VariableSpec{ref.name, *dtype->second.get<DType>(), *shape->second.get<PartialShape>()};
}

template <class Actor>
void end(const Actor& actor) {
  caf::anon_send_exit(actor, caf::exit_reason::user_shutdown);
}

}  // namespace

Expected<ResourceTable::Found> ResourceTable::find(const ResourceRef& ref, const Place& place,
                                                   const WorkerActor& worker,
                                                   caf::actor_system& system, Declared& declared) {
  auto found = ref.kind == "variable" ? variable(ref, place, worker, system, declared)
                                      : made(ref, place, worker, system);
  if (found.ok()) return found;
  return found.status().at(ref.def.site).in("in node '" + ref.def.name + "'");
}

Expected<ResourceTable::Found> ResourceTable::variable(const ResourceRef& ref, const Place& place,
                                                       const WorkerActor& worker,
                                                       caf::actor_system& system,
                                                       Declared& declared) {
  TROUPE_TRY(VariableSpec spec, variable_spec(ref));
  auto known = containers_.find({place.name, ref.container});
  if (known == containers_.end()) {
    TROUPE_TRY(const ResourceId id, ids_.take(place.name, {ref.kind, ref.container, {}}));
    auto actor =
        spawn_variables(system, ref.container.empty() ? "default" : ref.container, id,
                        *place.device, place.lanes, worker, options_.alive, options_.trace);
    participants_[id.hash] = actor;
    known = containers_.emplace(Key{place.name, ref.container}, Container{id, actor}).first;
  }
  const Container& c = known->second;
  auto& [actor, message] = declared[c.id];
  actor = c.actor;
  message.variables.push_back(std::move(spec));
  return Found{c.id, c.actor, false};
}

// Stops its functions first, since the dataset's thread may be in one that does not end.
class ResourceTable::Dataset {
 public:
  Dataset(DatasetActor actor, std::shared_ptr<FunctionStop> stop)
      : actor_(std::move(actor)), stop_(std::move(stop)) {}
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;
  ~Dataset() { end(); }

  const DatasetActor& actor() const { return actor_; }
  void end() {
    stop_->stop();
    troupe::end(actor_);
  }

 private:
  const DatasetActor actor_;
  const std::shared_ptr<FunctionStop> stop_;
};

ResourceTable::Found ResourceTable::dataset(const ResourceRef& ref,
                                            const LoadedFunctions& functions,
                                            caf::actor_system& system) {
  NodeDef described = ref.def;  // without its device
  described.device.clear();
  std::uint64_t key = hash_text(ref.name, hash_text(ref.container, hash_of_computation(described)));
  for (const auto& function : functions) key = hash_combine(key, function->hash);
  auto found = datasets_[key].lock();
  if (!found) {
    std::erase_if(datasets_, [](const auto& entry) { return entry.second.expired(); });
    auto stop = std::make_shared<FunctionStop>();
    auto actor = spawn_dataset(system, ref.def, callable(functions, stop, options_.step_memory),
                               options_.own_threads);
    found = std::make_shared<Dataset>(std::move(actor), std::move(stop));
    datasets_[key] = found;
  }
  return {{}, found->actor(), false, found};
}

Expected<ResourceTable::Found> ResourceTable::made(const ResourceRef& ref, const Place& place,
                                                   const WorkerActor& worker,
                                                   caf::actor_system& system) {
  TROUPE_TRY(const ResourceKind* kind, find_resource_kind(ref.kind));
  const auto key = std::pair(Key{place.name, ref.container}, ref.kind + " " + ref.name);
  if (auto known = made_.find(key); known != made_.end()) {
    if (kind->agree) TROUPE_TRY(kind->agree(known->second.ref, ref));
    return Found{known->second.id, known->second.actor, known->second.outside};
  }
  std::unique_ptr<Resource> resource;
  if (kind->make_with_files) {
    resource = kind->make_with_files(*options_.files,
                                     options_.random ? options_.random() : machine_random());
  } else {
    TROUPE_TRY(resource, kind->make(ref));
  }
  TROUPE_TRY(const ResourceId id, ids_.take(place.name, {ref.kind, ref.container, ref.name}));
  Made made{id, ref, {}, kind->outside};
  made.actor = spawn_resource(system, std::move(resource), made.id, worker,
                              kind->own_thread && options_.own_threads);
  participants_[made.id.hash] = made.actor;
  Found found{made.id, made.actor, made.outside};
  made_.emplace(key, std::move(made));
  return found;
}

std::vector<ResourceId> ResourceTable::drop(const std::vector<std::string>& containers) {
  std::vector<ResourceId> dropped;
  auto is_dropped = [&](const Key& key) {
    return std::find(containers.begin(), containers.end(), key.second) != containers.end();
  };
  auto drop = [&](const auto& resource) {
    participants_.erase(resource.id.hash);
    ids_.give_back(resource.id);
    end(resource.actor);
    dropped.push_back(resource.id);
    return true;
  };
  std::erase_if(containers_, [&](const auto& c) { return is_dropped(c.first) && drop(c.second); });
  std::erase_if(made_, [&](const auto& m) {
    return !m.second.ref.name.empty() && is_dropped(m.first.first) && drop(m.second);
  });
  return dropped;
}

void ResourceTable::end_all() {
  for (const auto& [_, participant] : participants_) end(participant);
  for (const auto& [_, dataset] : datasets_)
    if (auto running = dataset.lock()) running->end();
}

}  // namespace troupe
