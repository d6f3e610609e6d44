// Copies a constant to each device that reads it, instead of one message per run.
#include <algorithm>
#include <map>
#include <set>

#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// Above this size, another copy's memory costs more than a message.
constexpr std::size_t kSpreadBytes = std::size_t{1} << 20;

bool has_kernel(const NodeDef& constant, const std::string& device, const Target& target) {
  if (!target.kernels) return true;
  const auto name = DeviceName::parse(device);
  return name.ok() && target.kernels->has(constant.op, *name->type, constant.out_types[0]);
}

bool can_spread(const NodeDef& node) {
  if (node.op != "Const" || !node.control.empty()) return false;
  const auto attr = node.attrs.find("value");
  const Tensor* value = attr == node.attrs.end() ? nullptr : attr->second.get<Tensor>();
  return value && value->bytes() <= kSpreadBytes;
}

using Readers = std::map<NodeId, std::set<std::string>>;  // other devices that read a constant

Readers find_readers(const GraphDef& graph, const std::vector<bool>& free) {
  Readers readers;
  for (const NodeDef& node : graph.nodes)
    for (Port in : node.inputs) {
      const NodeDef& source = graph.nodes[in.node];
      if (free[in.node] && node.op != kFeedOp && node.device != source.device && can_spread(source))
        readers[in.node].insert(node.device);
    }
  return readers;
}

// Constants that must keep their node: read on its device, by control edges, fetches or targets.
std::vector<bool> find_staying(const StepGraph& step) {
  const auto& nodes = step.graph.nodes;
  std::vector<bool> stays(nodes.size(), false);
  for (const NodeDef& node : nodes) {
    for (Port in : node.inputs)
      if (node.op == kFeedOp || node.device == nodes[in.node].device) stays[in.node] = true;
    for (NodeId c : node.control) stays[c] = true;
  }
  for (Port fetch : step.fetches) stays[fetch.node] = true;
  for (NodeId id : step.targets) stays[id] = true;
  return stays;
}

}  // namespace

void spread_constants(StepGraph& step, const std::vector<bool>& free, const Target& target) {
  const Readers readers = find_readers(step.graph, free);
  if (readers.empty()) return;
  const std::vector<bool> stays = find_staying(step);
  const auto& nodes = step.graph.nodes;
  std::map<std::pair<NodeId, std::string>, NodeId> copies;
  std::size_t made = 0;
  Rewriter out(step);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const NodeDef& node = nodes[id];
    const auto at = readers.find(id);
    bool keep = at == readers.end() || stays[id];
    if (at != readers.end())
      for (const std::string& device : at->second) {
        if (!has_kernel(node, device, target)) {
          keep = true;
          continue;
        }
        NodeDef copy = node;
        copy.name = "_constant/" + std::to_string(made++) + "/" + node.name;
        copy.device = device;
        copies.emplace(std::pair(id, device), out.append(std::move(copy)));
      }
    if (!keep) continue;
    std::vector<Port> pointed;  // only this node reads the copies on its device
    for (Port in : node.inputs)
      if (auto copy = copies.find({in.node, node.device}); copy != copies.end()) {
        out.map_port(in, {copy->second, 0});
        pointed.push_back(in);
      }
    out.keep(id);
    for (Port in : pointed) out.map_port(in, Port{});
  }
  out.finish();
}

}  // namespace troupe
