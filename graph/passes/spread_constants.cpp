// A constant is known everywhere: a copy on each device that reads it instead of a message a run.
#include <algorithm>
#include <map>
#include <set>

#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// Above this the memory of another copy is dearer than a message.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

bool has_kernel(const NodeDef& constant, const std::string& device, const Target& target) {
  if (!target.kernels) return true;
  const auto name = DeviceName::parse(device);
  return name.ok() && target.kernels->has(constant.op, *name->type, constant.out_types[0]);
}

}  // namespace

void spread_constants(Step& step, const std::vector<bool>& free, const Target& target) {
  const auto& nodes = step.graph.nodes;
  std::map<NodeId, std::set<std::string>> readers;  // devices that read a constant
  std::set<NodeId> stays;                           // read where it is, or by more than data
  for (NodeId id = 0; id < nodes.size(); ++id) {
    for (Port in : nodes[id].inputs)
      if (free[in.node] && nodes[id].op != kFeedOp) readers[in.node].insert(nodes[id].device);
    for (NodeId c : nodes[id].control) stays.insert(c);
  }
  for (Port fetch : step.fetches) stays.insert(fetch.node);
  for (NodeId id : step.targets) stays.insert(id);

  std::map<std::pair<NodeId, std::string>, NodeId> copies;
  std::size_t made = 0;
  Rewriter out(step);
  for (NodeId id = 0; id < nodes.size(); ++id) {
    const NodeDef& node = nodes[id];
    const auto at = readers.find(id);
    const Tensor* value = nullptr;
    if (at != readers.end() && node.op == "Const" && node.control.empty())
      if (auto attr = node.attrs.find("value"); attr != node.attrs.end())
        value = attr->second.get<Tensor>();
    bool keep = !value || value->bytes() > kMostBytes || stays.count(id) > 0;
    if (value && value->bytes() <= kMostBytes)
      for (const std::string& device : at->second) {
        if (device == node.device || !has_kernel(node, device, target)) {
          keep = true;
          continue;
        }
        NodeDef copy = node;
        copy.name = "_constant/" + std::to_string(made++) + "/" + node.name;
        copy.device = device;
        copies.emplace(std::pair(id, device), out.append(std::move(copy)));
      }
    if (!keep) continue;
    auto point = [&](bool at_copies) {
      for (Port in : node.inputs)
        if (auto copy = copies.find({in.node, node.device}); copy != copies.end())
          out.map_port(in, at_copies ? Port{copy->second, 0} : Port{});
    };
    point(true);
    out.keep(id);
    point(false);
  }
  out.finish();
}

}  // namespace troupe
