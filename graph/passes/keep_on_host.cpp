// Keeps integers on the host that are in host memory: values computed from shapes, and labels and
// indices that only the host reads. On the device, they would have to be copied back, and the host
// would wait for all earlier work of the device.
#include <algorithm>
#include <vector>

#include "graph/passes/partition.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {
namespace {

// Results known to be larger than this are computed on the device.
constexpr std::int64_t kSmall = 4096;

struct Reader {
  NodeId node;
  std::size_t flat;
};

// Where a tensor is and comes from. `shape`: computed from shapes and constants only.
enum class Origin : std::uint8_t { device, constant, shape, data };

const TargetDevice* device_of(const NodeDef& node, const Target& target) {
  for (const TargetDevice& d : target.devices)
    if (d.name.text() == node.device) return &d;
  return nullptr;
}
MemorySpace space_of(const NodeDef& node, const Target& target) {
  const TargetDevice* device = device_of(node, target);
  return device ? device->space : MemorySpace::host;
}

class Keeper {
 public:
  Keeper(StepGraph& step, const std::vector<bool>& free, const Target& target)
      : graph_(step.graph), free_(free), target_(target), ops_(*target.ops) {}

  void run() {
    if (std::none_of(target_.devices.begin(), target_.devices.end(),
                     [](const TargetDevice& d) { return d.space == MemorySpace::device; }))
      return;
    find_candidates();
    // A node stays only while its inputs and, for data, its readers are on the host.
    std::vector<NodeId> doubtful;
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) doubtful.push_back(id);
    while (!doubtful.empty()) {
      const NodeId id = doubtful.back();
      doubtful.pop_back();
      if (!kept_[id] || stays(id)) continue;
      kept_[id] = false;
      for (Port in : graph_.nodes[id].inputs) doubtful.push_back(in.node);
      for (const Reader& reader : readers_[id]) doubtful.push_back(reader.node);
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id)
      if (kept_[id]) keep(id);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) keep_elements(id);
  }

 private:
  const OpInfo& op(NodeId id) const { return op_of(graph_.nodes[id], ops_); }
  bool is_feed(NodeId id) const { return graph_.nodes[id].op == kFeedOp; }

  static bool same_task(const DeviceName& a, const DeviceName& b) {
    return a.job == b.job && a.task == b.task;
  }
  static bool counts(DType dtype) { return is_integer(dtype) || dtype == DType::bool_; }
  static bool small(const PartialShape& shape) {
    return !shape.fully_known() || shape.shape().elements() <= kSmall;
  }

  void find_candidates() {
    readers_.resize(graph_.nodes.size());
    kept_.assign(graph_.nodes.size(), false);
    home_.assign(graph_.nodes.size(), nullptr);
    origin_.assign(graph_.nodes.size(), Origin::device);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const NodeDef& node = graph_.nodes[id];
      for (std::size_t i = 0; i < node.inputs.size(); ++i)
        readers_[node.inputs[i].node].push_back({id, i});
      origin_[id] = origin_of(id);
      kept_[id] = can_stay(id);
      if (!kept_[id]) continue;
      origin_[id] = Origin::shape;
      for (Port in : node.inputs)
        if (from(in) == Origin::data) origin_[id] = Origin::data;
    }
  }

  // The origin of a node that is no candidate.
  Origin origin_of(NodeId id) const {
    if (is_feed(id)) return Origin::data;
    const OpDef& def = op(id).def;
    if (def.external.resource == "dataset" && def.role == Role::external) return Origin::data;
    if (def.role != Role::kernel) return Origin::device;
    if (graph_.nodes[id].op == "Const") return Origin::constant;
    // Ops with only host outputs, such as Size, compute them from shapes; other host values are
    // data.
    if (def.host.empty() || def.out.empty()) return Origin::device;
    for (const ArgSpec& out : op(id).out)
      if (!out.host) return Origin::device;
    return Origin::shape;
  }
  Origin from(Port in) const { return origin_[in.node]; }

  // Whether all inputs are on the host, and all outputs are integers that a CPU can compute.
  bool can_stay(NodeId id) {
    if (is_feed(id)) return false;
    const NodeDef& node = graph_.nodes[id];
    const OpInfo& info = op(id);
    if (info.def.role != Role::kernel || info.def.stateful || info.def.random) return false;
    if (origin_[id] != Origin::device || node.inputs.empty() || node.out_types.empty())
      return false;
    if (!std::all_of(node.out_types.begin(), node.out_types.end(), counts)) return false;
    bool any = false;
    const TargetDevice* home = device_of(node, target_);
    if (home->space == MemorySpace::host) home = nullptr;
    for (Port in : node.inputs) {
      const NodeDef& source = graph_.nodes[in.node];
      if (!counts(source.out_types[in.index])) return false;
      const Origin origin = from(in);
      if (origin == Origin::device) return false;
      any = any || origin != Origin::constant;
      // A node on a CPU that computes with shapes of a device's tensors moves to that device.
      const TargetDevice* there = kept_[in.node] ? home_[in.node] : device_of(source, target_);
      if (!home && free_[id] && origin == Origin::shape && there->space == MemorySpace::device &&
          same_task(there->name, device_of(node, target_)->name))
        home = there;
    }
    if (!any || !home) return false;
    const DType* type = nullptr;
    if (const auto at = node.attrs.find("T"); at != node.attrs.end())
      type = at->second.get<DType>();
    if (target_.kernels && !target_.kernels->has(node.op, "CPU", type ? *type : DType::invalid))
      return false;
    home_[id] = home;
    return true;
  }

  bool reads_on_host(const Reader& reader, Port port) const {
    if (is_feed(reader.node)) return true;
    const NodeDef& node = graph_.nodes[reader.node];
    if (kept_[reader.node]) return true;
    const MemorySpace space = space_of(node, target_);
    return input_space(op(reader.node), node, reader.flat,
                       graph_.nodes[port.node].out_types[port.index], space) == MemorySpace::host;
  }
  // Whether all readers read it on the host. A fetch always does.
  bool read_on_host(NodeId id) const {
    return std::all_of(readers_[id].begin(), readers_[id].end(), [&](const Reader& reader) {
      return reads_on_host(reader, graph_.nodes[reader.node].inputs[reader.flat]);
    });
  }

  bool stays(NodeId id) const {
    const NodeDef& node = graph_.nodes[id];
    bool of_data = false;
    for (Port in : node.inputs) {
      const Origin origin = from(in);
      const bool here = origin == Origin::constant || kept_[in.node] || is_feed(in.node) ||
                        origin_of(in.node) != Origin::device;
      if (!here) return false;
      of_data = of_data || origin == Origin::data;
    }
    if (of_data) return read_on_host(id);
    return std::all_of(node.out_shapes.begin(), node.out_shapes.end(), small);
  }

  void keep(NodeId id) {
    NodeDef& node = graph_.nodes[id];
    node.device = home_[id]->name.text();
    node.attrs.insert_or_assign(std::string(kOnHostAttr), Attr(true));
  }

  // Elements of a dataset are copied to the device only if it reads them.
  void keep_elements(NodeId id) {
    NodeDef& node = graph_.nodes[id];
    if (is_feed(id) || space_of(node, target_) == MemorySpace::host) return;
    if (op(id).def.external.resource != "dataset" || op(id).def.role != Role::external) return;
    std::vector<bool> read(node.out_types.size(), false), device(node.out_types.size(), false);
    for (const Reader& reader : readers_[id]) {
      const Port port = graph_.nodes[reader.node].inputs[reader.flat];
      read[port.index] = true;
      if (!reads_on_host(reader, port)) device[port.index] = true;
    }
    for (std::size_t i = 0; i < read.size(); ++i)
      if (read[i] && !device[i]) node.attrs.insert_or_assign(std::string(kOnHostAttr), Attr(true));
  }

  GraphDef& graph_;
  const std::vector<bool>& free_;
  const Target& target_;
  const OpRegistry& ops_;
  std::vector<std::vector<Reader>> readers_;
  std::vector<bool> kept_;
  std::vector<const TargetDevice*> home_;  // of kept nodes
  std::vector<Origin> origin_;
};

}  // namespace

void keep_on_host(StepGraph& step, const std::vector<bool>& free, const Target& target) {
  Keeper(step, free, target).run();
}

void keep_constants_on_host(StepGraph& step, const Target& target) {
  GraphDef& graph = step.graph;
  std::vector<bool> stays(graph.nodes.size(), false), read(graph.nodes.size(), false);
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    stays[id] =
        graph.nodes[id].op == "Const" && space_of(graph.nodes[id], target) == MemorySpace::device;
  for (const NodeDef& node : graph.nodes)
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Port in = node.inputs[i];
      read[in.node] = true;
      if (!stays[in.node] || node.op == kFeedOp || node.device != graph.nodes[in.node].device)
        continue;
      const DType dtype = graph.nodes[in.node].out_types[in.index];
      if (input_space(op_of(node, *target.ops), node, i, dtype, MemorySpace::device) ==
          MemorySpace::device)
        stays[in.node] = false;
    }
  for (Port fetch : step.fetches) read[fetch.node] = true;
  for (NodeId id = 0; id < graph.nodes.size(); ++id)
    if (stays[id] && read[id])
      graph.nodes[id].attrs.insert_or_assign(std::string(kOnHostAttr), Attr(true));
}

}  // namespace troupe
