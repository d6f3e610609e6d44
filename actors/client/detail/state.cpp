#include "actors/client/detail/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "actors/resources/request.hpp"
#include "graph/node_query.hpp"
#include "ops/graph_api.hpp"
#include "ops/nn/tables.hpp"
#include "serialization/resource_state.hpp"
#include "serialization/safetensors.hpp"

namespace troupe::detail {

Expected<CallResult> run_single(const std::shared_ptr<SessionCore>& core, CompileRequest request,
                                std::vector<Tensor> feeds, RunFor whom, bool only_reads,
                                std::shared_ptr<const JobPlace> resume,
                                std::vector<std::string> files) {
  request.replicas = 1;
  const auto step = std::make_shared<Step>();
  step->core = core;
  step->with_place = whom == RunFor::session;
  step->only_reads = only_reads;
  step->resume = std::move(resume);
  step->files = std::move(files);
  for (std::size_t i = 0; i < feeds.size(); ++i)
    step->feeds.push_back({request.feeds[i].text(), feeds[i].dtype(), feeds[i].shape()});
  step->request = std::move(request);
  TROUPE_TRY(compile_first(*step, compile_request));
  CallResult answer;
  TROUPE_TRY(run_to_end(*step, feeds, {}, answer));
  return answer;
}

std::vector<NamedHandle> other_resources(const GraphBuilder& graph) {
  std::vector<NamedHandle> all;
  std::set<ResourceName> known;
  const auto& nodes = graph.def().nodes;
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const OpInfo* op = graph.registry().find(nodes[id].op);
    if (!op || op->def.role != Role::handle) continue;
    const std::string& kind = op->def.external.resource;
    if (kind == "variable" || kind == "dataset" || kind == kMutexKind) continue;
    ResourceName name{kind, resource_container(nodes[id]), resource_name(nodes[id])};
    if (known.insert(name).second) all.push_back({id, std::move(name)});
  }
  return all;
}

namespace {

// The handles of these resources, in order.
Expected<std::vector<NodeId>> handles_of(const GraphBuilder& graph,
                                         const std::vector<SavedResource>& resources) {
  if (resources.empty()) return std::vector<NodeId>();
  std::map<ResourceName, NodeId> known;
  for (const NamedHandle& each : other_resources(graph)) known.emplace(each.resource, each.node);
  std::vector<NodeId> handles;
  for (const SavedResource& each : resources) {
    TROUPE_TRY(state_of(each.state).status().in("in the state of " + each.resource.text()));
    auto found = known.extract(each.resource);
    if (found.empty())
      return not_found(
          fmt::format("the graph has no {}, or it is there twice", each.resource.text()));
    handles.push_back(found.mapped());
  }
  return handles;
}

// Refuses places of unknown datasets, which would be ignored silently.
Status check_datasets(const GraphBuilder& graph, const std::vector<DatasetPlace>& datasets) {
  for (const DatasetPlace& place : datasets) {
    auto is_it = [&](const NodeDef& node) {
      const OpInfo* op = graph.registry().find(node.op);
      if (!op || op->def.role != Role::handle || op->def.external.resource != "dataset" ||
          resource_name(node) != place.dataset.name)
        return false;
      return place.dataset.container == resource_container(node);
    };
    const auto& nodes = graph.def().nodes;
    if (std::none_of(nodes.begin(), nodes.end(), is_it))
      return not_found(fmt::format("the graph has no dataset '{}'", place.dataset.name));
  }
  return ok_status();
}

std::vector<std::string> variable_names(const GraphDef& graph) {
  std::vector<std::string> names;
  for (const NodeDef& node : graph.nodes)
    if (node.op == "Variable") names.push_back(state_name(node));
  return names;
}

// Refuses to take tables, or parts of them, from a file that has them in other parts.
Status check_parts(const std::vector<std::string>& of_graph, const std::vector<std::string>& wanted,
                   const nn::HasVariable& file_has) {
  const std::unordered_set<std::string> known(of_graph.begin(), of_graph.end());
  for (const std::string& name : wanted)
    if (const std::string other = nn::kept_otherwise(
            name, [&](const std::string& each) { return known.contains(each); }, file_has);
        !other.empty())
      return invalid_argument(fmt::format(
          "it has '{}': the table of variable '{}' is in other parts in the graph", other, name));
  return ok_status();
}

// The same of the state of a job. A variable that it lacks would be initialised by whoever goes on.
Status check_parts_of(const GraphDef& graph, const JobState& state) {
  std::unordered_set<std::string> there;
  for (const auto& [name, value] : state.variables) there.insert(name);
  for (const StoredVariable& each : state.stored) there.insert(each.tensor.name);
  const std::vector<std::string> all = variable_names(graph);
  return check_parts(all, all, [&](const std::string& name) { return there.contains(name); });
}

// One read of each variable, whatever handles it has. Two variables of one name are refused.
Expected<std::vector<VariableRead>> once_each(const std::vector<VariableRead>& all) {
  std::vector<VariableRead> reads;
  std::map<std::string, const NodeDef*> known;
  for (const VariableRead& each : all) {
    const NodeDef& variable = *each.variable;
    const auto [at, fresh] = known.emplace(state_name(variable), &variable);
    if (fresh) reads.push_back(each);
    if (!fresh && resource_container(variable) != resource_container(*at->second))
      return already_exists(fmt::format("'{}' ({}) and '{}' ({}) would both be saved as '{}'",
                                        at->second->name, at->second->site.text(), variable.name,
                                        variable.site.text(), at->first));
  }
  return reads;
}

}  // namespace

std::vector<VariableRead> variable_reads(const GraphDef& graph, const OpRegistry& ops) {
  std::vector<VariableRead> reads;
  std::unordered_set<NodeId> known;
  for (const NodeDef& node : graph.nodes)
    if (node.op == "ReadVariable" && node.control.empty() &&
        known.insert(node.inputs[0].node).second)
      reads.push_back({&graph.nodes[node.inputs[0].node], &node});
  for (const NodeDef& node : graph.nodes) {
    if (node.op == "Assign" || node.op == "IsVariableInitialized") continue;
    const Role role = role_of(node, ops);
    if (role != Role::call && role != Role::external) continue;
    for (const Port in : node.inputs)
      if (const NodeDef& from = graph.nodes[in.node];
          from.op == "Variable" && known.insert(in.node).second)
        reads.push_back({&from, &from});
  }
  return reads;
}

Expected<std::vector<VariableRead>> state_reads(const GraphBuilder& graph) {
  return once_each(variable_reads(graph.def(), graph.registry()));
}

Expected<std::vector<VariableRead>> reads_of(const SessionCore& core,
                                             const std::vector<Variable>& variables) {
  const std::vector<VariableRead> all = variable_reads(core.graph.def(), core.graph.registry());
  std::vector<VariableRead> out;
  for (const Variable& v : variables) {
    if (v.handle().empty()) return invalid_argument("a Variable that stands for none");
    TROUPE_TRY(check_graph(core, v.handle().graph(), "variable"));
    const std::string name = v.name();
    const auto found = std::find_if(all.begin(), all.end(), [&](const VariableRead& each) {
      return each.variable->name == name;
    });
    if (found == all.end())
      return invalid_argument(fmt::format("the graph does not read variable '{}'", name));
    out.push_back(*found);
  }
  return once_each(out);
}

void take_place(JobPlace place, JobState& state) {
  state.committed = place.committed;
  state.datasets = std::move(place.datasets);
  state.note = std::move(place.note);
  state.once = std::move(place.once);
  state.fetches = std::move(place.fetches);
  state.draws = place.draws;
}

Expected<JobState> read_state(const std::shared_ptr<SessionCore>& core,
                              const std::vector<VariableRead>& variables,
                              const std::vector<NamedHandle>& resources) {
  CompileRequest request;
  std::vector<std::string> names;
  std::vector<NodeId> unread;
  for (const VariableRead& each : variables)
    if (each.read == each.variable)
      unread.push_back(NodeId(each.variable - core->graph.def().nodes.data()));
  std::unique_lock lock(core->mutex);
  TROUPE_TRY(core->shipping.add_reads(unread));
  auto next = unread.begin();
  for (const VariableRead& each : variables) {
    names.push_back(state_name(*each.variable));
    const bool own = each.read == each.variable;
    request.fetches.push_back({own ? core->shipping.read_of(*next++) : each.read->name, 0, false});
  }
  std::vector<NodeId> handles;
  for (const NamedHandle& each : resources) handles.push_back(each.node);
  TROUPE_TRY(core->shipping.add_saves(handles, request));
  lock.unlock();
  JobState state;
  if (request.fetches.empty()) return state;
  TROUPE_TRY(CallResult result,
             run_single(core, std::move(request), {}, RunFor::session, /*only_reads=*/true));
  take_place(*result.place, state);
  for (std::size_t i = 0; i < names.size(); ++i)
    state.variables.emplace_back(names[i], std::move(result.fetches[i]));
  for (std::size_t i = 0; i < resources.size(); ++i)
    state.resources.push_back({resources[i].resource, std::move(result.fetches[names.size() + i])});
  return state;
}

std::vector<Initializer> initializers_of(const GraphBuilder& graph) {
  std::vector<Initializer> all;
  for (NodeId assign : graph.initializers())
    all.push_back({assign, graph.node(assign).inputs[0].node});
  return all;
}

Expected<std::vector<Initializer>> without_value(const std::shared_ptr<SessionCore>& core,
                                                 std::vector<Initializer> of) {
  if (of.empty() || !core->any_run) return of;
  std::vector<NodeId> handles;
  for (const Initializer& each : of) handles.push_back(each.handle);
  std::unique_lock lock(core->mutex);
  TROUPE_TRY(CompileRequest request, core->shipping.add_checks(handles));
  lock.unlock();
  TROUPE_TRY(const CallResult result,
             run_single(core, std::move(request), {}, RunFor::session, /*only_reads=*/true));
  std::vector<Initializer> left;
  for (std::size_t i = 0; i < of.size(); ++i)
    if (!result.fetches.at(i).item<bool>()) left.push_back(of[i]);
  return left;
}

std::vector<std::vector<Initializer>> in_rounds(const GraphBuilder& graph,
                                                const std::vector<Initializer>& all,
                                                const std::unordered_set<std::string>& first) {
  // By key of a variable that is assigned: the round that can read what it is assigned.
  std::unordered_map<std::string, std::size_t> next;
  for (const std::string& key : first) next.emplace(key, 1);
  std::vector<std::vector<Initializer>> rounds(1);
  std::vector<std::size_t> round_of;  // by node: the first that can compute it
  for (const Initializer& each : all) {
    // What a value is computed from was made before the variable.
    for (NodeId id = NodeId(round_of.size()); id <= each.assign; ++id) {
      const NodeDef& node = graph.node(id);
      std::size_t round = 0;
      const auto after = [&](NodeId from) {
        if (from >= id) return;
        round = std::max(round, round_of[from]);
        if (graph.node(from).op != "Variable" || (id == each.assign && from == each.handle)) return;
        const auto known = next.find(resource_key(graph.node(from), graph.registry()));
        if (known != next.end()) round = std::max(round, known->second);
      };
      for (Port in : node.inputs) after(in.node);
      for (NodeId c : node.control) after(c);
      round_of.push_back(round);
    }
    const std::size_t round = round_of[each.assign];
    if (round >= rounds.size()) rounds.resize(round + 1);
    rounds[round].push_back(each);
    std::size_t& mine = next[resource_key(graph.node(each.handle), graph.registry())];
    mine = std::max(mine, round + 1);
  }
  return rounds;
}

void add_targets(const GraphBuilder& graph, const std::vector<Initializer>& initializers,
                 CompileRequest& request) {
  for (const Initializer& each : initializers)
    request.targets.push_back(graph.node(each.assign).name);
}

Expected<std::vector<std::string>> hosts_of(SessionCore& core,
                                            const std::vector<const NodeDef*>& variables) {
  AskHomes message;
  for (const NodeDef* each : variables)
    message.variables.emplace_back(resource_container(*each), resource_name(*each));
  CallResult result = ask(core, std::move(message));
  TROUPE_TRY(result.status);
  if (result.text.size() != variables.size())
    return internal_error("the master does not know where the variables are");
  for (std::string& home : result.text) {
    if (home.empty()) continue;
    TROUPE_TRY(DeviceName device, DeviceName::parse(home));
    device.type = "CPU";
    device.index = 0;
    home = device.text();
  }
  return std::move(result.text);
}

Expected<CompileRequest> restores_of(const std::shared_ptr<SessionCore>& core,
                                     const std::vector<StoredVariable>& stored) {
  std::vector<ShippedGraph::Assigned> assigned;
  for (const StoredVariable& each : stored)
    assigned.push_back({each.tensor.name, each.tensor.dtype, each.tensor.shape});
  Step placing;
  placing.core = core;
  {
    std::lock_guard lock(core->mutex);
    TROUPE_TRY(placing.request, core->shipping.add_assignments(assigned));
  }
  placing.request.replicas = 1;
  TROUPE_TRY(compile_first(placing, compile_request));

  std::unordered_map<std::string, NodeId> known;
  {
    std::lock_guard lock(core->mutex);
    known = core->shipping.variables();
  }
  std::vector<const NodeDef*> variables;
  for (const StoredVariable& each : stored)
    variables.push_back(&core->graph.node(known.at(each.tensor.name)));
  TROUPE_TRY(const std::vector<std::string> hosts, hosts_of(*core, variables));
  std::map<std::pair<std::string, std::string>, ShippedGraph::ShardRestore> restores;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    ShippedGraph::ShardRestore& each = restores[{hosts[i], stored[i].file}];
    each.device = hosts[i];
    each.file = stored[i].file;
    each.tensors.push_back(stored[i].tensor);
  }
  std::vector<ShippedGraph::ShardRestore> all;
  for (auto& [_, each] : restores) all.push_back(std::move(each));
  std::lock_guard lock(core->mutex);
  return core->shipping.add_shard_restores(all);
}

Status resume(const std::shared_ptr<SessionCore>& core, const JobState& state) {
  TROUPE_TRY(check_datasets(core->graph, state.datasets));
  TROUPE_TRY(check_parts_of(core->graph.def(), state));
  std::vector<Tensor> feeds;
  for (const auto& [name, value] : state.variables) feeds.push_back(value);
  TROUPE_TRY(const std::vector<NodeId> handles, handles_of(core->graph, state.resources));
  for (const SavedResource& each : state.resources) feeds.push_back(each.state);
  CompileRequest restores;
  if (!state.stored.empty()) {
    TROUPE_TRY(restores, restores_of(core, state.stored));
  }
  std::unique_lock lock(core->mutex);
  TROUPE_TRY(CompileRequest request, core->shipping.add_assignments(state.variables));
  TROUPE_TRY(core->shipping.add_loads(handles, request));
  request.targets.insert(request.targets.end(), restores.targets.begin(), restores.targets.end());
  lock.unlock();
  auto place = std::make_shared<const JobPlace>(JobPlace{
      state.committed, state.datasets, state.note, state.once, state.fetches, state.draws});
  return run_single(core, std::move(request), std::move(feeds), RunFor::session,
                    /*only_reads=*/false, std::move(place))
      .status();
}

Status move_place(const std::shared_ptr<SessionCore>& core, const std::string& note) {
  return move_at_gate(
      *core,
      [core, note] {
        return ask(*core, MarkPlace{core->id, note, nullptr});
      },
      note.size());
}

Status move_place_alone(const std::shared_ptr<SessionCore>& core, const std::string& note) {
  const auto mark = [core, note] { return ask(*core, MarkPlace{core->id, note, nullptr}); };
  const CallResult result = mark();
  if (result.status.ok() && core->logs)
    core->log.enter_done(
        [mark] {
          return RunLog::Outcome{mark().status.code(), 0, 0};
        },
        note.size(), result.seen);
  return result.status;
}

Expected<NamedTensors> match_variables(const GraphDef& graph,
                                       const std::vector<VariableRead>& variables,
                                       const SafetensorsFile& file, bool all,
                                       const NameInFile& name_in_file) {
  const auto there = [&](const std::string& name) {
    return name_in_file ? name_in_file(name) : name;
  };
  std::vector<std::pair<std::string, const SafetensorsEntry*>> matching;
  std::vector<std::string> names;
  for (const VariableRead& each : variables) names.push_back(state_name(*each.variable));
  const auto file_has = [&](const std::string& name) { return file.find(there(name)) != nullptr; };
  if (std::any_of(names.begin(), names.end(), file_has))
    TROUPE_TRY(check_parts(variable_names(graph), names, file_has));
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::string& name = names[i];
    const DType dtype = *variables[i].variable->attrs.at("T").get<DType>();
    const PartialShape& shape = *variables[i].variable->attrs.at("shape").get<PartialShape>();
    const std::string wanted = std::string(dtype_name(dtype)) + shape.text();
    const std::string in_file = there(name);
    const SafetensorsEntry* found = file.find(in_file);
    if (found == nullptr) {
      if (!all) continue;
      const std::string here = in_file == name ? "" : fmt::format("'{}', ", name);
      return not_found(
          fmt::format("it has no variable '{}', {}{} in the graph", in_file, here, wanted));
    }
    if (found->dtype != dtype || !shape.accepts(found->shape))
      return invalid_argument(fmt::format("variable '{}' is {} there, and {} in the graph", name,
                                          found->type_text(), wanted));
    matching.emplace_back(name, found);
  }
  if (matching.empty()) return not_found("it has none of the graph's variables");
  NamedTensors values;
  for (auto& [name, entry] : matching) {
    TROUPE_TRY(Tensor value, file.read(*entry));
    values.emplace_back(std::move(name), std::move(value));
  }
  return values;
}

Expected<CompileRequest> assignments_of(SessionCore& core, const NamedTensors& values) {
  std::string key;
  for (const auto& [name, value] : values)
    key += fmt::format("{}\n{}{}\n", name, dtype_name(value.dtype()), value.shape().text());
  std::lock_guard lock(core.mutex);
  auto known = core.assignments.find(key);
  if (known == core.assignments.end()) {
    TROUPE_TRY(CompileRequest request, core.shipping.add_assignments(values));
    known = core.assignments.emplace(key, std::move(request)).first;
  }
  return known->second;
}

std::unordered_set<std::string> keys_of(const GraphBuilder& graph, const NamedTensors& restored) {
  std::unordered_set<std::string> names, keys;
  for (const auto& [name, value] : restored) names.insert(name);
  for (const NodeDef& node : graph.def().nodes)
    if (node.op == "Variable" && names.contains(state_name(node)))
      keys.insert(resource_key(node, graph.registry()));
  return keys;
}

std::vector<Initializer> others(const GraphBuilder& graph, const NamedTensors& restored) {
  const std::unordered_set<std::string> keys = keys_of(graph, restored);
  std::vector<Initializer> left = initializers_of(graph);
  std::erase_if(left, [&](const Initializer& each) {
    return keys.contains(resource_key(graph.node(each.handle), graph.registry()));
  });
  return left;
}

Status write_variables(const std::string& path, const NamedTensors& variables) {
  if (variables.empty())
    return failed_precondition(
        "the graph reads no variable to save: what queues and other resources hold is kept by "
        "save_job");
  Safetensors content;
  for (const auto& [name, value] : variables) {
    if (!safetensors_holds(value.dtype()))
      return invalid_argument(fmt::format("variable '{}' is {}{}, which safetensors does not hold",
                                          name, dtype_name(value.dtype()), value.shape().text()));
    content.tensors.emplace(name, value);
  }
  return write_safetensors(path, content);
}

}  // namespace troupe::detail
