#include "actors/worker/load_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "actors/resources/update_rules.hpp"
#include "actors/worker/load_plan.hpp"
#include "graph/compile.hpp"
#include "graph/node_query.hpp"

namespace troupe {
Expected<std::unordered_map<std::uint32_t, WriteInfo>> write_infos(const Plan& plan,
                                                                   const OpTable& ops,
                                                                   Device& device) {
  std::unordered_map<std::uint32_t, WriteInfo> infos;
  std::map<std::string, std::uint32_t> first;  // original name -> node whose rule is shared
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanInfo& info = plan.info[i];
    if (!info.external || info.external->order != External::Order::write) continue;
    WriteInfo& write = infos[i];
    write.replica = std::uint32_t(std::max(0, info.replica));
    auto [known, fresh] = first.emplace(original_name(info.def), i);
    write.key = known->second;
    if (!fresh) {
      write.rule = infos.at(known->second).rule;
      continue;
    }
    std::vector<std::string> targets;
    for (std::uint32_t handle : info.handles) targets.push_back(plan.resources[handle].name);
    TROUPE_TRY(write.rule, make_rule(ops, info.def, std::move(targets), device));
  }
  return infos;
}

std::unordered_map<std::uint32_t, std::uint32_t> first_copies(const Plan& plan) {
  std::unordered_map<std::uint32_t, std::uint32_t> copies;
  std::map<std::string, std::uint32_t> first;  // by original name
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const PlanInfo& info = plan.info[i];
    const bool unordered = info.external && info.external->order == External::Order::none;
    if (!unordered || info.replica < 0) continue;
    const auto [known, fresh] = first.emplace(original_name(info.def), i);
    if (!fresh) copies.emplace(i, known->second);
  }
  return copies;
}

std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> reads_after(
    const Plan& plan, const std::unordered_map<std::uint32_t, WriteInfo>& writes) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> writes_of;  // by resource
  for (const auto& [node, write] : writes)
    for (std::uint32_t handle : plan.info[node].handles) writes_of[handle].push_back(node);
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    const External* external = plan.info[i].external;
    if (!external || external->order != External::Order::read || plan.info[i].epoch == 0) continue;
    auto& keys = after[i];
    for (std::uint32_t node : writes_of[plan.info[i].resource])
      if (plan.info[node].epoch < plan.info[i].epoch) keys.push_back(writes.at(node).key);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  return after;
}

std::uint64_t conflict_key(TaskId task, const ResourceRef& resource, const std::string& device) {
  std::uint64_t key = hash_text(resource.kind, number(task));
  return hash_text(resource.name, hash_text(resource.container, hash_text(device, key)));
}

StepLoader::StepLoader(TaskId task, const OpTable& ops, const std::vector<Device*>& devices,
                       bool check)
    : task_(task), ops_(ops), check_(check), host_(ops) {
  for (Device* device : devices) devices_[device->name().text()] = device;
}

void StepLoader::load(const LoadGraph& message) {
  Loaded& loaded = graphs_[message.session];
  if (message.from == 0) loaded = {};
  // Parts after a refused one are ignored.
  if (loaded.status.ok()) loaded.status = grow(loaded, message);
}

Status StepLoader::grow(Loaded& loaded, const LoadGraph& message) {
  if (loaded.graph().nodes.size() != message.from)
    return failed_precondition(fmt::format("task {} has {} nodes of the graph, not {}",
                                           number(task_), loaded.graph().nodes.size(),
                                           message.from));
  if (!check_) {  // the master of this process has checked it
    loaded.trusted.seed = message.graph->seed;
    auto& nodes = loaded.trusted.nodes;
    nodes.insert(nodes.end(), message.graph->nodes.begin(), message.graph->nodes.end());
    auto& functions = loaded.trusted.functions;
    functions.insert(functions.end(), message.graph->functions.begin(),
                     message.graph->functions.end());
    return ok_status();
  }
  if (message.from == 0)
    loaded.import = std::make_unique<GraphImport>(ops_.ops, message.graph->seed);
  return loaded.import->extend(message.graph->nodes, message.graph->functions);
}

PreparedStep StepLoader::prepare(const LoadStep& message, std::function<bool()> stopped) {
  PreparedStep out;
  out.status = prepare(message, std::move(stopped), out);
  return out;
}

Status StepLoader::prepare(const LoadStep& message, std::function<bool()> stopped,
                           PreparedStep& out) {
  auto graph = graphs_.find(message.session);
  if (graph != graphs_.end()) TROUPE_TRY(graph->second.status);
  if (graph == graphs_.end() || graph->second.graph().nodes.size() != message.version)
    return failed_precondition(fmt::format("task {} does not have version {} of the graph",
                                           number(task_), message.version));
  Target target = host_.target();
  target.devices = message.devices;
  target.soft_placement = message.soft_placement;
  target.fixed = message.fixed;
  target.disabled = message.disabled_passes;
  target.stopped = std::move(stopped);
  const GraphDef& nodes = graph->second.graph();
  TROUPE_TRY(CompiledGraph compiled, compile(nodes, graph->second.index, message.request, target));
  std::vector<FeedSpec> feeds;  // in the request's order
  if (check_) {
    for (const PortName& name : message.request.feeds) {
      const NodeId id = graph->second.index.find(name.node);
      TROUPE_CHECK(id != kNoNode, "a step that compiled has the nodes that it is fed");
      const NodeDef& node = nodes.nodes[id];
      feeds.push_back({name.text(), node.out_types[std::size_t(name.port)],
                       node.out_shapes[std::size_t(name.port)]});
    }
  }
  for (std::uint32_t p = 0; p < compiled.plans.size(); ++p) {
    Plan& plan = compiled.plans[p];
    out.tasks.push_back(task_of(plan.device));
    if (out.tasks.back() != task_) continue;
    if (!devices_.contains(plan.device)) return not_found("there is no device " + plan.device);
    TROUPE_TRY(PreparedStep::Partition partition, prepare(std::move(plan), graph->second, target));
    partition.index = p;
    for (const PlanFeed& feed : partition.program->plan().feeds)
      if (check_) partition.feeds.push_back(feeds[feed.feed]);
    out.partitions.push_back(std::move(partition));
  }
  out.channels = std::move(compiled.channels);
  return ok_status();
}

Expected<PreparedStep::Partition> StepLoader::prepare(Plan plan, Loaded& loaded,
                                                      const Target& target) {
  Device& device = *devices_.at(plan.device);
  PreparedStep::Partition out;
  for (std::uint32_t r = 0; r < plan.resources.size(); ++r) {
    if (plan.resources[r].kind != "dataset") continue;
    TROUPE_TRY(out.functions[r],
               loaded.functions.load(loaded.graph(), plan.resources[r].def, target, ops_));
  }
  TROUPE_TRY(out.program, load_plan(std::move(plan), device, ops_));
  TROUPE_TRY(out.writes, write_infos(out.program->plan(), ops_, device));
  out.copies = first_copies(out.program->plan());
  out.after = reads_after(out.program->plan(), out.writes);
  return out;
}

}  // namespace troupe
