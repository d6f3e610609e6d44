#include "actors/master/session_graphs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "graph/node_hash.hpp"
#include "graph/node_query.hpp"
#include "graph/passes/variable_homes.hpp"

namespace troupe {
namespace {

// Whether a node has other inputs only since its loops were closed. REQUIRES: of one op.
bool closes_loops(const GraphDef& now, NodeId id, const NodeDef& before, const OpRegistry& ops) {
  const NodeDef& node = now.nodes[id];
  if (role_of(node, ops) != Role::merge || node.inputs.size() != before.inputs.size()) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i] != before.inputs[i] &&
        role_of(now.nodes[node.inputs[i].node], ops) != Role::next_iteration)
      return false;
  return true;
}

// How a node of a graph that is shipped again differs from the known one, but for its inputs: "its
// attribute 'size' is 3, not 2". Empty if it does not. Creation sites may differ. REQUIRES: both
// were imported.
std::optional<std::string> difference(const NodeDef& now, const NodeDef& before) {
  auto differ = [](std::string_view what, std::string_view is, std::string_view was) {
    return fmt::format("{} is {}, not {}", what, is, was);
  };
  if (now.name != before.name) return differ("its name", now.name, before.name);
  if (now.op != before.op) return differ("its op", now.op, before.op);
  if (now.control != before.control) return "it has other control inputs";
  if (now.device != before.device)
    return differ("its device", "'" + now.device + "'", "'" + before.device + "'");
  if (now.colocate != before.colocate) return "it is colocated with other nodes";
  if (now.replica != before.replica)
    return differ("its replica", std::to_string(now.replica), std::to_string(before.replica));
  auto was = before.attrs.begin();  // same op, so the same attributes in the same order
  for (const auto& [name, value] : now.attrs) {
    if (!(value == was->second))
      return differ("its attribute '" + name + "'", value.text(), was->second.text());
    ++was;
  }
  return std::nullopt;
}

Status check_seed(const GraphDef& now, const GraphDef& known) {
  if (now.seed == known.seed) return ok_status();  // a new seed would change random numbers
  return failed_precondition(
      fmt::format("the graph's seed is {}, the session's is {}", now.seed, known.seed));
}

// The nodes from `from` on, and the functions that came with them, for a task with the earlier
// ones.
LoadGraph nodes_since(std::uint64_t session, const GraphDef& graph,
                      const std::vector<std::size_t>& functions_from, std::uint64_t from) {
  auto nodes = std::make_shared<GraphDef>();
  nodes->seed = graph.seed;
  nodes->nodes.assign(graph.nodes.begin() + std::ptrdiff_t(from), graph.nodes.end());
  for (std::size_t i = 0; i < graph.functions.size(); ++i)
    if (functions_from[i] >= from) nodes->functions.push_back(graph.functions[i]);
  return {session, graph.nodes.size(), std::move(nodes), from};
}

}  // namespace

Expected<SessionGraphs::Extended> SessionGraphs::extend(const ExtendSession& message) {
  Known& known = graphs_[message.session];
  if (!known.import) known.import = std::make_unique<GraphImport>(ops_.ops, message.graph->seed);
  const bool fresh = known.import->graph().nodes.empty();
  if (fresh && message.from == 0)  // no nodes yet: the seed may change
    known.import = std::make_unique<GraphImport>(ops_.ops, message.graph->seed);
  const std::size_t before = known.import->graph().nodes.size();
  Expected<bool> changed = false;
  if (message.from == 0 && !fresh)
    changed = replace(known, message);
  else if (Status appended = append(known, message); !appended.ok())
    changed = std::move(appended);
  TROUPE_TRY(changed.status());
  known.functions_from.resize(known.import->graph().functions.size(), before);
  for (const FunctionDef& f : message.graph->functions) known.hash = hash_functions(known.hash, f);
  for (const NodeDef& node : message.graph->nodes) known.hash = hash_nodes(known.hash, node);
  return Extended{known.import->graph().nodes.size(), *changed};
}

// Compares imported graphs, with defaults filled in and nodes in order; new nodes come last.
Expected<bool> SessionGraphs::replace(Known& known, const ExtendSession& message) {
  const GraphDef& before = known.import->graph();
  if (message.graph->nodes.size() < before.nodes.size())
    return failed_precondition(fmt::format("the graph has {} nodes, the session has {} already",
                                           message.graph->nodes.size(), before.nodes.size()));
  TROUPE_TRY(check_seed(*message.graph, before));
  auto now = std::make_unique<GraphImport>(ops_.ops, message.graph->seed);
  TROUPE_TRY(now->extend(message.graph->nodes, message.graph->functions));
  for (std::size_t i = 0; i < before.functions.size(); ++i)
    if (i >= now->graph().functions.size() ||
        hash_functions(0, now->graph().functions[i]) != hash_functions(0, before.functions[i]))
      return failed_precondition(fmt::format("function '{}' is not as the session knows it",
                                             before.functions[i].name))
          .at(before.functions[i].site);
  bool changed = false;
  for (NodeId i = 0; i < before.nodes.size(); ++i) {
    const NodeDef& node = now->graph().nodes[i];
    auto what = difference(node, before.nodes[i]);
    if (!what && node.inputs != before.nodes[i].inputs) {
      changed = true;
      if (!closes_loops(now->graph(), i, before.nodes[i], ops_.ops)) what = "it has other inputs";
    }
    if (what)
      return failed_precondition(fmt::format("node {} '{}' ({}) is not as the session knows it: {}",
                                             i, before.nodes[i].name, before.nodes[i].op, *what))
          .at(node.site);
  }
  known.import = std::move(now);
  known.index = {};
  known.homes_of = 0;
  known.hash = 0;
  return changed;
}

Status SessionGraphs::append(Known& known, const ExtendSession& message) {
  const GraphDef& before = known.import->graph();
  if (message.from != before.nodes.size())
    return failed_precondition(
        fmt::format("nodes that come after {} others, where the session has {}", message.from,
                    before.nodes.size()));
  if (message.from > 0) {
    TROUPE_TRY(check_seed(*message.graph, before));
    if (!known.import->in_order())
      return failed_precondition(
          "the session has put its nodes in order; only a whole graph goes on from it");
    if (message.hash != known.hash)
      return failed_precondition(
          fmt::format("the {} nodes that new ones come after are not those that the "
                      "session has",
                      message.from));
  }
  // Tasks get functions together with the nodes that they came with.
  if (message.graph->nodes.empty() && !message.graph->functions.empty())
    return invalid_argument("functions come with nodes that call them");
  return known.import->extend(message.graph->nodes, message.graph->functions);
}

// Recomputed only if new nodes matter for them, which is rare.
void SessionGraphs::find_homes(Known& known, const Target& target, bool spread) {
  const GraphDef& graph = known.import->graph();
  const bool same_devices = std::equal(
      known.devices.begin(), known.devices.end(), target.devices.begin(), target.devices.end(),
      [](const DeviceName& a, const TargetDevice& b) { return a == b.name; });
  bool found = known.homes_of > 0 && known.spread == spread && same_devices;
  for (std::size_t id = known.homes_of; found && id < graph.nodes.size(); ++id)
    found = !bears_on_homes(graph, NodeId(id), *target.ops);
  known.homes_of = graph.nodes.size();
  if (found) return;
  known.homes = variable_homes(graph, target, spread);
  known.spread = spread;
  known.devices.clear();
  for (const TargetDevice& device : target.devices) known.devices.push_back(device.name);
}

CompiledStepDraft SessionGraphs::compile(Work work) {
  CompiledStepDraft draft;
  auto found = graphs_.find(work.session);
  if (found == graphs_.end() || found->second.import->graph().nodes.empty()) {
    draft.status = invalid_argument("the session has no graph");
    return draft;
  }
  const GraphDef& graph = found->second.import->graph();
  host_.complete(work.target);
  work.target.fixed = placed_;
  find_homes(found->second, work.target, std::max(work.replicas, work.request.replicas) > 1);
  work.target.fixed.insert(found->second.homes.begin(), found->second.homes.end());
  draft.fixed = work.target.fixed;
  auto compiled = troupe::compile(graph, found->second.index, work.request, work.target);
  if (!compiled.ok()) {
    draft.status = compiled.status();
    return draft;
  }
  draft.graph = std::move(compiled).value();
  for (const Plan& plan : draft.graph.plans)
    for (const ResourceRef& resource : plan.resources)
      if (!resource.name.empty() && !is_replicas_dataset(resource.def, ops_.ops))
        placed_.emplace(resource_key(resource.def, ops_.ops),
                        DeviceName::parse(plan.device).value());
  std::map<std::uint64_t, LoadGraph> since;  // most tasks lack the same nodes
  for (const Plan& plan : draft.graph.plans) {
    const TaskId task = task_of(plan.device);
    const std::uint64_t has = work.versions[task];
    if (has == graph.nodes.size() || draft.loads.contains(task)) continue;
    auto [at, added] = since.try_emplace(has);
    if (added) at->second = nodes_since(work.session, graph, found->second.functions_from, has);
    draft.loads.emplace(task, at->second);
  }
  return draft;
}

}  // namespace troupe
