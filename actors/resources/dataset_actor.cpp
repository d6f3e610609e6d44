#include "actors/resources/dataset_actor.hpp"

#include <algorithm>
#include <caf/actor_system.hpp>
#include <caf/typed_event_based_actor.hpp>
#include <map>
#include <new>
#include <optional>
#include <stdexcept>

#include "actors/resources/read_ahead.hpp"
#include "actors/spawn.hpp"
#include "core/float_environment.hpp"
#include "ops/data/dataset.hpp"

namespace troupe {

Expected<Pipeline> open_local_dataset(const NodeDef& dataset, ExampleFunctions functions) {
  return open_dataset(
      dataset, [](const std::string& path) { return open_local_file(path); }, functions);
}

namespace {

// More elements made ahead would take memory and save no time.
constexpr std::int64_t kMostPrefetch = 1024;

struct DatasetState {
  NodeDef def;
  std::vector<ExampleFunctionPtr> functions;
  std::optional<Expected<Pipeline>> pipeline;  // once opened
  std::optional<ReadAhead> read_ahead;
  // Elements made ahead, by position. A position is usually requested once, so an element is
  // removed when it is served; for a repeated run it is made again, and is the same.
  std::map<std::uint64_t, Expected<std::vector<Tensor>>> ahead;
  bool ticking = false;
};

using DatasetSelf = DatasetActor::stateful_pointer<DatasetState>;

// Tries again after an error: a missing file may exist by now.
Expected<Pipeline>& opened(DatasetState& s) {
  if (!s.pipeline || !s.pipeline->ok()) s.pipeline.emplace(open_local_dataset(s.def, s.functions));
  return *s.pipeline;
}

void tick_soon(DatasetSelf self) {
  if (self->state.ticking) return;
  self->state.ticking = true;
  self->send(self, Tick{});
}

Expected<std::vector<Tensor>> make(DatasetState& s, std::uint64_t position) try {
  Expected<Pipeline>& pipeline = opened(s);
  if (!pipeline.ok()) return pipeline.status();
  const FloatEnvironment as_in_kernels;
  return pipeline->element(position,
                           [&](std::uint64_t other) { return s.read_ahead->awaited(other); });
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for an element of a dataset");
} catch (const std::length_error&) {
  return resource_exhausted("no memory for an element of a dataset");
}

Expected<std::vector<Tensor>> element(DatasetState& s, std::uint64_t position) {
  if (auto made = s.ahead.extract(position); !made.empty()) return std::move(made.mapped());
  return make(s, position);
}

void serve(DatasetSelf self, const ResourceCall& message) {
  auto& s = self->state;
  const ResourceRequest::Item& item = message.request.items.front();
  const std::uint64_t position = item.position;
  if (s.read_ahead->asked(item.replica(), position, item.elements)) s.ahead.clear();
  auto made = element(s, position);
  ResourceAnswer answer{message.request.attempt.id, message.request.id, made.status()};
  if (made.ok()) answer.values = std::move(made).value();
  self->send(message.reply_to, std::move(answer));
  s.ahead.erase(s.ahead.begin(), s.ahead.lower_bound(position > 64 ? position - 64 : 0));
  if (s.read_ahead->next(s.ahead.size())) tick_soon(self);
}

void make_ahead(DatasetSelf self) {
  auto& s = self->state;
  s.ticking = false;
  const auto next = s.read_ahead->next(s.ahead.size());
  if (!next || !s.pipeline || !s.pipeline->ok()) return;
  if (auto end = (*s.pipeline)->elements(); end && *next >= *end) return;
  auto made = make(s, *next);
  const bool ok = made.ok();
  // The end, or an error: reported when the element is requested.
  s.ahead.emplace(*next, std::move(made));
  s.read_ahead->made();
  if (ok && s.read_ahead->next(s.ahead.size())) tick_soon(self);
}

DatasetActor::behavior_type dataset_behavior(DatasetSelf self, NodeDef def,
                                             std::vector<ExampleFunctionPtr> functions) {
  std::int64_t most = 0;
  if (auto it = def.attrs.find("prefetch"); it != def.attrs.end())
    most = std::clamp<std::int64_t>(*it->second.get<std::int64_t>(), 0, kMostPrefetch);
  self->state.read_ahead.emplace(std::uint64_t(most));
  self->state.def = std::move(def);
  self->state.functions = std::move(functions);
  return {
      [self](const ResourceCall& message) { serve(self, message); },
      [self](const Tick&) { make_ahead(self); },
  };
}

}  // namespace

DatasetActor spawn_dataset(caf::actor_system& system, NodeDef dataset,
                           std::vector<ExampleFunctionPtr> functions, bool own_thread) {
  static constexpr char kName[] = "dataset";
  return own_thread ? spawn_actor<DatasetActor, caf::detached>(
                          system, kName, dataset_behavior, std::move(dataset), std::move(functions))
                    : spawn_actor<DatasetActor>(system, kName, dataset_behavior, std::move(dataset),
                                                std::move(functions));
}

}  // namespace troupe
