#include "actors/client/shipped_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "graph/node_query.hpp"

namespace troupe {
namespace {

// Adds to a separate graph: an assignment of a fed value to a variable like this one.
Expected<Op> try_assign(GraphBuilder& beside, const NodeDef& variable,
                        const ShippedGraph::Assigned& value) {
  TROUPE_TRY(Op handle, beside.try_add({.op = "Variable", .attrs = variable.attrs}));
  TROUPE_TRY(Op fed, beside.try_add({.op = "Placeholder",
                                     .attrs = {{"T", value.dtype}, {"shape", value.shape}}}));
  return beside.try_add({.op = "Assign", .inputs = {handle.output(), fed.output()}});
}

// The name of node `k` of an insertion that has to do with a node of the client: ".save3/NAME", or
// with what there is room for of a long name.
std::string own_name(std::string_view kind, std::size_t insertion, const std::string& name,
                     std::size_t k) {
  constexpr std::size_t kMost = 900;
  if (name.size() <= kMost) return fmt::format(".{}{}/{}", kind, insertion, name);
  return fmt::format(".{}{}/{}_{}", kind, insertion, name.substr(0, kMost), k);
}

// The device that the graph requests for a resource, at its handle or at a node that takes it.
// Needed because the first step that uses a resource places it, and may be one of the session.
std::string device_of(const GraphBuilder& graph, NodeId handle) {
  const auto& nodes = graph.def().nodes;
  if (!nodes[handle].device.empty()) return nodes[handle].device;
  const std::string key = resource_key(nodes[handle], graph.registry());
  for (const NodeDef& node : nodes)
    for (const Port& in : node.inputs)
      if (!node.device.empty() && in.node < nodes.size() && nodes[in.node].op == nodes[handle].op &&
          resource_key(nodes[in.node], graph.registry()) == key)
        return node.device;
  return {};
}

}  // namespace

std::string state_name(const NodeDef& variable) {
  const std::string container = resource_container(variable);
  return container.empty() ? resource_name(variable) : container + "/" + resource_name(variable);
}

NodeId ShippedGraph::shipped(NodeId of_client) const {
  std::size_t number = of_client;
  for (const Own& own : insertions_)
    if (own.after <= of_client) number += own.nodes.size();
  return NodeId(number);
}

const GraphDef& ShippedGraph::whole() {
  const GraphDef& client = graph_.def();
  if (insertions_.empty()) return client;
  merged_.seed = client.seed;
  for (std::size_t i = merged_.functions.size(); i < client.functions.size(); ++i)
    merged_.functions.push_back(client.functions[i]);
  // close_loop() sets an input of an existing Merge.
  for (NodeId id : merges_) merged_.nodes[shipped(id)].inputs = shipped(client.nodes[id].inputs);
  for (;; ++merged_client_) {
    for (; merged_insertions_ < insertions_.size() &&
           insertions_[merged_insertions_].after == merged_client_;
         ++merged_insertions_) {
      const auto& own = insertions_[merged_insertions_].nodes;
      merged_.nodes.insert(merged_.nodes.end(), own.begin(), own.end());
    }
    if (merged_client_ == client.nodes.size()) return merged_;
    NodeDef node = client.nodes[merged_client_];
    if (node.op == "Merge") merges_.push_back(NodeId(merged_client_));
    node.inputs = shipped(std::move(node.inputs));
    for (NodeId& control : node.control) control = shipped(control);
    merged_.nodes.push_back(std::move(node));
  }
}

std::vector<Port> ShippedGraph::shipped(std::vector<Port> inputs) const {
  for (Port& input : inputs) input.node = shipped(input.node);
  return inputs;
}

std::unordered_map<std::string, NodeId> ShippedGraph::variables() const {
  std::unordered_map<std::string, NodeId> all;
  const auto& nodes = graph_.def().nodes;
  for (NodeId id = 0; id < nodes.size(); ++id)
    if (nodes[id].op == "Variable") all.emplace(state_name(nodes[id]), id);
  for (NodeId id = 0; id < nodes.size(); ++id)
    if (nodes[id].op == "Variable") all.emplace(nodes[id].name, id);
  return all;
}

Expected<CompileRequest> ShippedGraph::add_assignments(
    const std::vector<std::pair<std::string, Tensor>>& values) {
  std::vector<Assigned> assigned;
  for (const auto& [name, value] : values) assigned.push_back({name, value.dtype(), value.shape()});
  return add_assignments(assigned);
}

Expected<CompileRequest> ShippedGraph::add_assignments(const std::vector<Assigned>& values) {
  std::unordered_map<std::string, NodeId> known = variables();
  const auto& nodes = graph_.def().nodes;

  // The nodes are checked and completed in a separate graph, then inserted. Errors must be found
  // here, because inserted nodes are shipped from now on.
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  CompileRequest request;
  Own own{NodeId(nodes.size()), {}};
  for (const Assigned& value : values) {
    auto found = known.find(value.name);
    if (found == known.end()) return not_found("the graph has no variable '" + value.name + "'");
    const NodeId handle = found->second;
    const NodeDef& variable = nodes[handle];
    known.erase(found);  // only once
    auto assign = try_assign(beside, variable, value);
    if (!assign.ok()) return assign.status().in("restoring '" + value.name + "'");
    NodeDef write = beside.node(assign->node());
    NodeDef feed = beside.node(write.inputs[1].node);
    // A builder gives nobody else a name that begins with a dot.
    write.name = ".restore" + std::to_string(insertions_.size()) + "/" +
                 std::to_string(request.targets.size());
    feed.name = write.name + "_value";
    write.inputs = {{shipped(handle), 0}, {NodeId(size() + own.nodes.size()), 0}};
    feed.site = write.site = variable.site;
    request.feeds.push_back({feed.name, 0, false});
    request.targets.push_back(write.name);
    own.nodes.push_back(std::move(feed));
    own.nodes.push_back(std::move(write));
  }
  insert(std::move(own));
  return request;
}

Expected<CompileRequest> ShippedGraph::add_checks(const std::vector<NodeId>& handles) {
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  CompileRequest request;
  Own own{NodeId(graph_.def().nodes.size()), {}};
  std::map<NodeId, std::string> added;
  for (const NodeId id : handles) {
    if (auto known = checks_.find(id); known != checks_.end()) {
      request.fetches.push_back({known->second, 0, false});
      continue;
    }
    const NodeDef& variable = graph_.node(id);
    TROUPE_TRY(Op handle, beside.try_add({.op = "Variable", .attrs = variable.attrs}));
    TROUPE_TRY(Op check,
               beside.try_add({.op = "IsVariableInitialized", .inputs = {handle.output()}}));
    NodeDef node = beside.node(check.node());
    node.name =
        ".has_value" + std::to_string(insertions_.size()) + "/" + std::to_string(own.nodes.size());
    node.inputs = {{shipped(id), 0}};
    node.site = variable.site;
    request.fetches.push_back({node.name, 0, false});
    added.emplace(id, node.name);
    own.nodes.push_back(std::move(node));
  }
  checks_.merge(added);
  if (!own.nodes.empty()) insert(std::move(own));
  return request;
}

Status ShippedGraph::add_reads(const std::vector<NodeId>& handles) {
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  Own own{NodeId(graph_.def().nodes.size()), {}};
  std::map<NodeId, Read> added;
  for (const NodeId id : handles) {
    if (reads_.contains(id) || added.contains(id)) continue;
    const NodeDef& variable = graph_.node(id);
    TROUPE_TRY(Op handle, beside.try_add({.op = "Variable", .attrs = variable.attrs}));
    TROUPE_TRY(Op read, beside.try_add({.op = "ReadVariable",
                                        .inputs = {handle.output()},
                                        .attrs = {{"T", variable.attrs.at("T")}}}));
    NodeDef node = beside.node(read.node());
    node.name = own_name("read", insertions_.size(), variable.name, own.nodes.size());
    node.inputs = {{shipped(id), 0}};
    node.site = variable.site;
    added[id] = {node.name, NodeId(size() + own.nodes.size())};
    own.nodes.push_back(std::move(node));
  }
  reads_.merge(added);
  if (!own.nodes.empty()) insert(std::move(own));
  return ok_status();
}

Status ShippedGraph::add_saves(const std::vector<NodeId>& handles, CompileRequest& request) {
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  Own own{NodeId(graph_.def().nodes.size()), {}};
  std::map<NodeId, std::string> added;
  for (const NodeId id : handles) {
    if (saves_.contains(id)) continue;
    const NodeDef& resource = graph_.node(id);
    TROUPE_TRY(Op handle, beside.try_add({.op = resource.op, .attrs = resource.attrs}));
    TROUPE_TRY(Op save, beside.try_add({.op = "SaveResource", .inputs = {handle.output()}}));
    NodeDef node = beside.node(save.node());
    node.name = own_name("save", insertions_.size(), resource.name, own.nodes.size());
    node.inputs = {{shipped(id), 0}};
    node.device = device_of(graph_, id);
    node.site = resource.site;
    added.emplace(id, node.name);
    own.nodes.push_back(std::move(node));
  }
  saves_.merge(added);
  if (!own.nodes.empty()) insert(std::move(own));
  for (const NodeId id : handles) request.fetches.push_back({saves_.at(id), 0, false});
  return ok_status();
}

Status ShippedGraph::add_loads(const std::vector<NodeId>& handles, CompileRequest& request) {
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  Own own{NodeId(graph_.def().nodes.size()), {}};
  CompileRequest loads;
  for (const NodeId id : handles) {
    const NodeDef& resource = graph_.node(id);
    TROUPE_TRY(Op handle, beside.try_add({.op = resource.op, .attrs = resource.attrs}));
    TROUPE_TRY(Op fed,
               beside.try_add(
                   {.op = "Placeholder",
                    .attrs = {{"T", DType::u8}, {"shape", PartialShape{PartialShape::kUnknown}}}}));
    TROUPE_TRY(Op load,
               beside.try_add({.op = "LoadResource", .inputs = {handle.output(), fed.output()}}));
    NodeDef node = beside.node(load.node());
    NodeDef feed = beside.node(fed.node());
    node.name = own_name("load", insertions_.size(), resource.name, own.nodes.size());
    feed.name = own_name("state", insertions_.size(), resource.name, own.nodes.size());
    node.inputs = {{shipped(id), 0}, {NodeId(size() + own.nodes.size()), 0}};
    node.device = device_of(graph_, id);
    feed.site = node.site = resource.site;
    loads.feeds.push_back({feed.name, 0, false});
    loads.targets.push_back(node.name);
    own.nodes.push_back(std::move(feed));
    own.nodes.push_back(std::move(node));
  }
  if (!own.nodes.empty()) insert(std::move(own));
  request.feeds.insert(request.feeds.end(), loads.feeds.begin(), loads.feeds.end());
  request.targets.insert(request.targets.end(), loads.targets.begin(), loads.targets.end());
  return ok_status();
}

Expected<CompileRequest> ShippedGraph::add_shard_saves(const std::vector<ShardSave>& saves,
                                                       bool refuse_nan) {
  const auto key = std::pair(saves, refuse_nan);
  if (const auto known = shard_saves_.find(key); known != shard_saves_.end()) return known->second;
  std::vector<NodeId> unread;
  for (const ShardSave& save : saves)
    std::copy_if(save.reads.begin(), save.reads.end(), std::back_inserter(unread),
                 [&](NodeId id) { return graph_.node(id).op == "Variable"; });
  TROUPE_TRY(add_reads(unread));
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  CompileRequest request;
  Own own{NodeId(graph_.def().nodes.size()), {}};
  const std::string name = ".save_shards" + std::to_string(insertions_.size());
  std::vector<Output> folder_and_token;
  std::vector<Port> fed;
  for (const char* what : {"/folder", "/token"}) {
    TROUPE_TRY(Op input,
               beside.try_add({.op = "Placeholder",
                               .attrs = {{"T", DType::string}, {"shape", PartialShape{}}}}));
    folder_and_token.push_back(input.output());
    NodeDef node = beside.node(input.node());
    node.name = name + what;
    request.feeds.push_back({node.name, 0, false});
    fed.push_back({NodeId(size() + own.nodes.size()), 0});
    own.nodes.push_back(std::move(node));
  }
  for (std::size_t i = 0; i < saves.size(); ++i) {
    std::vector<Output> inputs = folder_and_token;
    std::vector<Port> shipped_inputs = fed;
    std::vector<DType> types;
    for (const NodeId id : saves[i].reads) {
      const NodeDef& read = graph_.node(id);
      const auto own_read = reads_.find(id);
      const bool is_own = own_read != reads_.end();
      types.push_back(is_own ? *read.attrs.at("T").get<DType>() : read.out_types[0]);
      TROUPE_TRY(Op value,
                 beside.try_add({.op = "Placeholder",
                                 .attrs = {{"T", types.back()}, {"shape", read.out_shapes[0]}}}));
      inputs.push_back(value.output());
      shipped_inputs.push_back({is_own ? own_read->second.shipped : shipped(id), 0});
    }
    const std::string file = "shard-" + std::to_string(i);
    TROUPE_TRY(Op save, beside.try_add({.op = "SaveShard",
                                        .inputs = inputs,
                                        .attrs = {{"names", saves[i].names},
                                                  {"types", types},
                                                  {"file", file},
                                                  {"refuse_nan", refuse_nan}}}));
    NodeDef node = beside.node(save.node());
    node.name = name + "/" + file;
    node.inputs = std::move(shipped_inputs);
    node.device = saves[i].device;
    request.fetches.push_back({node.name, 0, false});
    own.nodes.push_back(std::move(node));
  }
  insert(std::move(own));
  return shard_saves_[key] = request;
}

Expected<CompileRequest> ShippedGraph::add_shard_restores(
    const std::vector<ShardRestore>& restores) {
  std::unordered_map<std::string, NodeId> known = variables();
  GraphBuilder beside(graph_.registry(), graph_.def().seed);
  CompileRequest request;
  Own own{NodeId(graph_.def().nodes.size()), {}};
  const std::string name = ".restore_shards" + std::to_string(insertions_.size());
  for (std::size_t i = 0; i < restores.size(); ++i) {
    std::vector<std::string> names, hashes;
    std::vector<DType> types;
    std::vector<PartialShape> shapes;
    for (const StoredTensor& each : restores[i].tensors) {
      names.push_back(each.name);
      hashes.push_back(each.sha256);
      types.push_back(each.dtype);
      shapes.push_back(each.shape);
    }
    TROUPE_TRY(Op restore, beside.try_add({.op = "RestoreShard",
                                           .attrs = {{"file", restores[i].file},
                                                     {"names", names},
                                                     {"sha256", hashes},
                                                     {"types", types},
                                                     {"shapes", shapes}}}));
    NodeDef reads = beside.node(restore.node());
    reads.name = name + "/" + std::to_string(i);
    reads.device = restores[i].device;
    const NodeId number = NodeId(size() + own.nodes.size());
    own.nodes.push_back(std::move(reads));
    for (std::size_t k = 0; k < names.size(); ++k) {
      const auto found = known.find(names[k]);
      if (found == known.end()) return not_found("the graph has no variable '" + names[k] + "'");
      const NodeId id = found->second;
      const NodeDef& variable = graph_.node(id);
      known.erase(found);  // each once
      auto assign =
          try_assign(beside, variable, {names[k], types[k], restores[i].tensors[k].shape});
      if (!assign.ok()) return assign.status().in("restoring '" + names[k] + "'");
      NodeDef write = beside.node(assign->node());
      write.name = name + "/" + std::to_string(i) + "_" + std::to_string(k);
      write.inputs = {{shipped(id), 0}, {number, std::uint32_t(k)}};
      write.site = variable.site;
      request.targets.push_back(write.name);
      own.nodes.push_back(std::move(write));
    }
  }
  insert(std::move(own));
  return request;
}

void ShippedGraph::insert(Own own) {
  own_ += own.nodes.size();
  insertions_.push_back(std::move(own));
}

}  // namespace troupe
