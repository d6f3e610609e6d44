#include "actors/master/step_table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "actors/resources/request.hpp"
#include "actors/worker/dataset_reads.hpp"

namespace troupe {
namespace {

// The fast path supports writes of variables, and requests that have no part in commits and
// conflicts.
bool keeps_fast_path(const PlanInfo& info) {
  const External& external = *info.external;
  switch (external.order) {
    case External::Order::write:
      return true;
    case External::Order::read:
      return info.epoch == 0;
    case External::Order::none:
      break;
  }
  return !external.commits && !external.sees && !external.on_host;
}

// StepShape::fast_path: one partition, whose writes all go to one container and are followed by
// nothing that could fail.
bool fast_path(const CompiledGraph& graph) {
  if (graph.plans.size() != 1) return false;
  const Plan& plan = graph.plans.front();
  const std::string* container = nullptr;
  bool any = false;
  for (std::size_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    if (node.role == Role::switch_ || node.frame != 0) return false;
    if (node.role != Role::external) continue;
    if (!keeps_fast_path(plan.info[i])) return false;
    if (plan.info[i].external->order != External::Order::write) continue;
    any = true;
    for (std::uint32_t handle : plan.info[i].handles) {
      const std::string& name = plan.resources[handle].container;
      if (container && *container != name) return false;
      container = &name;
    }
    for (std::uint32_t e = 0; e < node.edges; ++e) {
      std::uint32_t next = plan.edges[node.first_edge + e].node;
      if (plan.info[next].def.op != "NoOp") return false;
    }
  }
  return any;
}

// The dataset's index in the step. Partitions that read the same dataset share it.
std::uint32_t share(StepShape& shape, const ResourceRef& resource, const DatasetRead& read) {
  const DatasetName name{resource.container, resource.name};
  auto at = std::find_if(shape.datasets.begin(), shape.datasets.end(),
                         [&](const auto& known) { return known.dataset == name; });
  if (at == shape.datasets.end()) at = shape.datasets.insert(at, {name, read.elements});
  at->open = at->open || read.open;
  return std::uint32_t(at - shape.datasets.begin());
}

// Adds the mutexes that nodes of the plan may acquire, in any branch.
void add_mutexes(StepShape& shape, const Plan& plan) {
  for (const PlanInfo& info : plan.info) {
    if (!info.external || info.external->resource != kMutexKind ||
        info.external->verb != kAcquireVerb)
      continue;
    const ResourceRef& resource = plan.resources[info.resource];
    const MutexName mutex{resource.container, resource.name};
    const bool known = std::any_of(shape.mutexes.begin(), shape.mutexes.end(),
                                   [&](const MutexUse& use) { return use.mutex == mutex; });
    if (known) continue;
    shape.mutexes.push_back({mutex, info.name, info.def.op,
                             info.def.site.known() ? info.def.site.text() : std::string()});
  }
}

// By slot, the node of the root frame that makes its value.
std::vector<std::uint32_t> makers(const Plan& plan) {
  std::vector<std::uint32_t> of_slot(plan.slots.size(), kNoNode);
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanNode& node = plan.nodes[i];
    if (node.frame == 0) std::fill_n(of_slot.begin() + node.first_slot, node.outputs, i);
  }
  return of_slot;
}

StepShape::Fetch fetch_of(const Plan& plan, const std::vector<std::uint32_t>& makers,
                          const PlanFetch& fetch) {
  const std::uint32_t node = makers.at(fetch.slot);
  if (node == kNoNode) return {fetch.fetch, DType::invalid, {}};
  const std::size_t output = fetch.slot - plan.nodes[node].first_slot;
  const auto& made = plan.info[node].def;
  return {fetch.fetch, made.out_types.at(output), made.out_shapes.at(output)};
}

}  // namespace

std::string request_key(const CompileRequest& request) {
  std::string key = fmt::format("{}", request.replicas);
  for (const PortName& p : request.feeds) key += "|<" + p.text();
  for (const PortName& p : request.fetches) key += "|>" + p.text();
  for (const std::string& t : request.targets) key += "|!" + t;
  return key;
}

std::shared_ptr<const StepShape> step_shape(const CompiledGraph& graph) {
  auto shape = std::make_shared<StepShape>();
  shape->may_write = false;
  for (std::size_t p = 0; p < graph.plans.size(); ++p) {
    StepShape::Partition& partition = shape->partitions.emplace_back();
    partition.task = task_of(graph.plans[p].device);
    partition.device = graph.plans[p].device;
    const std::vector<std::uint32_t> makers_of_slots =
        graph.plans[p].fetches.empty() ? std::vector<std::uint32_t>() : makers(graph.plans[p]);
    for (const PlanFetch& fetch : graph.plans[p].fetches)
      partition.fetches.push_back(fetch_of(graph.plans[p], makers_of_slots, fetch));
    for (const PlanFeed& feed : graph.plans[p].feeds) partition.feeds.push_back(feed.feed);
    shape->may_write |= graph.plans[p].writes;
    shape->draws |= graph.plans[p].draws;
    for (const PlanInfo& info : graph.plans[p].info)
      shape->current |= info.external && info.external->verb == kSaveStateVerb;
    add_mutexes(*shape, graph.plans[p]);
    for (const DatasetRead& read : dataset_reads(graph.plans[p]))
      partition.datasets.push_back(share(*shape, graph.plans[p].resources[read.resource], read));
  }
  shape->fast_path = fast_path(graph);
  return shape;
}

StepEntry* StepTable::find(CompiledId id) {
  auto it = steps_.find(id);
  if (it == steps_.end()) return nullptr;
  use(id);
  return &it->second;
}

StepEntry* StepTable::find(std::uint64_t session, const std::string& key) {
  auto it = by_key_.find({session, key});
  return it == by_key_.end() ? nullptr : find(it->second);
}

void StepTable::use(CompiledId id) {
  if (!recent_.empty() && recent_.back() == id) return;
  recent_.remove(id);
  recent_.push_back(id);
}

std::vector<CompiledId> StepTable::add(StepEntry step) {
  CompiledId id = step.id;
  std::uint64_t session = step.session;
  by_key_[{session, step.key}] = id;
  steps_.emplace(id, std::move(step));
  use(id);
  std::vector<CompiledId> evicted;
  std::size_t count = of_session(session).size();
  for (CompiledId old : std::vector<CompiledId>(recent_.begin(), recent_.end())) {
    if (count <= most_) break;
    const StepEntry& s = steps_.at(old);
    if (s.session != session || s.running > 0 || !s.loading.empty() || old == id) continue;
    evicted.push_back(old);
    --count;
  }
  for (CompiledId old : evicted) erase(old);
  return evicted;
}

void StepTable::erase(CompiledId id) {
  auto it = steps_.find(id);
  if (it == steps_.end()) return;
  const auto by_key = by_key_.find({it->second.session, it->second.key});
  if (by_key != by_key_.end() && by_key->second == id) by_key_.erase(by_key);
  steps_.erase(it);
  recent_.remove(id);
}

void StepTable::outdate(std::uint64_t session) {
  std::erase_if(by_key_, [&](const auto& known) { return known.first.first == session; });
}

std::vector<CompiledId> StepTable::that_use(const std::set<std::string>& containers) const {
  std::vector<CompiledId> ids;
  for (const auto& [id, step] : steps_)
    if (std::any_of(step.containers.begin(), step.containers.end(),
                    [&](const std::string& name) { return containers.contains(name); }))
      ids.push_back(id);
  return ids;
}

std::vector<const StepEntry*> StepTable::loading() const {
  std::vector<const StepEntry*> all;
  for (const auto& [id, step] : steps_)
    if (!step.loading.empty()) all.push_back(&step);
  return all;
}

std::vector<CompiledId> StepTable::of_session(std::uint64_t session) const {
  std::vector<CompiledId> ids;
  for (const auto& [id, step] : steps_)
    if (step.session == session) ids.push_back(id);
  return ids;
}

}  // namespace troupe
