#include "actors/load.hpp"

#include <algorithm>
#include <map>

#include "actors/update_rules.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

Expected<std::unordered_map<std::uint32_t, WriteInfo>> write_infos(const Plan& plan,
                                                                   const OpTable& ops,
                                                                   const Device& device) {
  std::unordered_map<std::uint32_t, WriteInfo> infos;
  std::map<std::string, std::uint32_t> first;  // original name -> node whose rule is shared
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].role != Role::write_variable) continue;
    const PlanInfo& info = plan.info[i];
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

std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> reads_after(
    const Plan& plan, const std::unordered_map<std::uint32_t, WriteInfo>& writes) {
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> after;
  for (std::uint32_t i = 0; i < plan.nodes.size(); ++i) {
    if (plan.nodes[i].role != Role::read_variable || plan.info[i].epoch == 0) continue;
    auto& keys = after[i];
    for (const auto& [node, write] : writes) {
      const auto& handles = plan.info[node].handles;
      if (plan.info[node].epoch < plan.info[i].epoch &&
          std::find(handles.begin(), handles.end(), plan.info[i].resource) != handles.end())
        keys.push_back(write.key);
    }
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  }
  return after;
}

std::vector<DatasetRead> dataset_reads(const Plan& plan) {
  std::vector<DatasetRead> reads;
  for (std::uint32_t r = 0; r < plan.resources.size(); ++r)
    if (plan.resources[r].kind == ResourceRef::Kind::dataset) reads.push_back({r, 1});
  for (const PlanInfo& info : plan.info)
    for (DatasetRead& read : reads) {
      auto replicas = info.def.attrs.find("replicas");
      if (info.resource != read.resource || replicas == info.def.attrs.end()) continue;
      if (const std::int64_t* n = replicas->second.get<std::int64_t>())
        read.elements = std::max(read.elements, std::uint32_t(std::max<std::int64_t>(1, *n)));
    }
  return reads;
}

std::uint64_t conflict_key(ProcessId process, const ResourceRef& resource,
                           const std::string& device) {
  std::uint64_t key = hash_combine(process, std::uint64_t(resource.kind));
  return hash_text(resource.name, hash_text(resource.container, hash_text(device, key)));
}

Expected<QueueSpec> queue_spec(const ResourceRef& resource) {
  QueueSpec spec;
  spec.name = resource.name;
  auto attr = [&](const char* name) -> const Attr* {
    auto it = resource.def.attrs.find(name);
    return it == resource.def.attrs.end() ? nullptr : &it->second;
  };
  const Attr* capacity = attr("capacity");
  const Attr* types = attr("types");
  const Attr* shapes = attr("shapes");
  if (!capacity || !capacity->get<std::int64_t>() || !types || !types->get<std::vector<DType>>())
    return invalid_argument("node '" + resource.def.name + "' does not describe a queue");
  spec.capacity = *capacity->get<std::int64_t>();
  spec.dtypes = *types->get<std::vector<DType>>();
  if (shapes && shapes->get<std::vector<PartialShape>>())
    spec.shapes = *shapes->get<std::vector<PartialShape>>();
  TROUPE_TRY(
      QueueState::check(spec).at(resource.def.site).in("in node '" + resource.def.name + "'"));
  return spec;
}

}  // namespace troupe
