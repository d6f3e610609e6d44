#include "graph/passes/partition.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace troupe {
namespace {

class Cutter {
 public:
  Cutter(StepGraph& step, const DistributedLoops& loops, const Target& target)
      : step_(step), loops_(loops), ops_(*target.ops), target_(target), out_(step) {
    for (std::uint32_t f = 1; f < loops.parts.size(); ++f)
      for (const LoopPart& part : loops.parts[f]) ended_by_.emplace(part.next, f);
  }

  Expected<Partitions> run() {
    TROUPE_TRY(find_devices());
    const auto& nodes = step_.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id) TROUPE_TRY(cut(id));
    for (Port& fetch : step_.fetches) {
      const std::uint32_t home = home_of(fetch.node);
      fetched_.push_back(in_space(local(fetch, home), home, MemorySpace::host, false));
    }
    finish();
    return std::move(result_);
  }

 private:
  Status find_devices() {
    std::map<std::string, DeviceName> used;
    std::map<std::string, std::uint32_t> index;
    const auto& nodes = step_.graph.nodes;
    for (const NodeDef& node : nodes) {
      if (node.op == kFeedOp || is_handle(role_of(node, ops_)) || used.count(node.device)) continue;
      TROUPE_TRY(auto name, DeviceName::parse(node.device));
      used.emplace(node.device, std::move(name));
    }
    for (const TargetDevice& device : target_.devices)
      if (used.count(device.name.text())) result_.devices.push_back(device);
    TROUPE_CHECK(result_.devices.size() == used.size(), "nodes are placed on the target's devices");
    std::sort(result_.devices.begin(), result_.devices.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    if (result_.devices.empty()) result_.devices.push_back(target_.devices.front());
    for (std::uint32_t i = 0; i < result_.devices.size(); ++i)
      index.emplace(result_.devices[i].name.text(), i);
    for (const NodeDef& node : nodes) {
      const bool none = node.op == kFeedOp || is_handle(role_of(node, ops_));
      old_home_.push_back(none ? kNoNode : index.at(node.device));
    }
    return ok_status();
  }

  std::uint32_t home_of(NodeId old_id) const { return old_home_[old_id]; }
  // The new node for an old one. REQUIRES: it was cut.
  const NodeDef& moved(NodeId old_id) const { return out_.graph().nodes[out_.node(old_id)]; }
  MemorySpace space_of(std::uint32_t partition) const { return result_.devices[partition].space; }

  NodeId append(NodeDef node, std::uint32_t home) {
    result_.of_node.push_back(home);
    return out_.append(std::move(node));
  }

  Status cut(NodeId id) {
    const std::uint32_t home = home_of(id);
    const auto ends = ended_by_.find(id);
    if (ends != ended_by_.end()) send_to_next(ends->second);
    NodeDef node = std::move(step_.graph.nodes[id]);
    const OpInfo& op = op_of(node, ops_);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      Port& in = node.inputs[i];
      if (in.node >= id)
        return in_node(unimplemented("a back edge: loops are not partitioned"), node);
      const DType dtype = moved(in.node).out_types[in.index];
      if (dtype == DType::resource) {
        in = out_.port(in);
        continue;
      }
      const MemorySpace want = input_space(op, node, i, dtype, space_of(home));
      in = local(in, home);
      if (dtype != DType::list) in = in_space(in, home, want, want == MemorySpace::device);
    }
    std::vector<NodeId> control;
    for (NodeId c : node.control) {
      if (moved(c).op == kFeedOp) continue;  // there from the start
      control.push_back(home_of(c) == home ? out_.node(c) : signal(c, home));
    }
    if (ends != ended_by_.end()) {
      const std::vector<NodeId>& sends = sends_[{ends->second, home}];
      control.insert(control.end(), sends.begin(), sends.end());
    }
    node.control = std::move(control);
    out_.map(id, append(std::move(node), home));
    return ok_status();
  }

  // Sends what the ends of a loop's parts read from each other: an iteration waits for all its
  // sends.
  void send_to_next(std::uint32_t loop) {
    for (const LoopPart& part : loops_.parts[loop])
      if (!out_.has(part.next))
        for (Port in : step_.graph.nodes[part.next].inputs) local(in, home_of(part.next));
  }

  // The distributed loop whose iterations make the outputs of the node; 0: none.
  std::uint32_t loop_of(NodeId old_id) const {
    return old_id < loops_.of_node.size() ? loops_.of_node[old_id] : 0;
  }
  NodeId begin_of(std::uint32_t loop, std::uint32_t home) const {
    const auto& parts = loops_.parts[loop];
    return std::find_if(parts.begin(), parts.end(),
                        [&](const LoopPart& p) { return home_of(p.begin) == home; })
        ->begin;
  }

  // The new port for an old one in partition `home`, in any memory space: of the producer, a feed,
  // or a _Recv.
  Port local(Port old, std::uint32_t home) {
    const std::uint32_t source = home_of(old.node);
    if (source == home || source == kNoNode) return out_.port(old);
    auto [at, added] = received_.try_emplace({old, home}, kNoNode);
    if (added) {
      Port host = in_space(out_.port(old), source, MemorySpace::host, false);
      at->second = cross(old.node, {host}, {}, source, home, int(old.index));
      if (role_of(moved(old.node), ops_) != Role::switch_)
        done_.try_emplace({old.node, home}, at->second);
    }
    return {at->second, 0};
  }

  // A node of partition `home` that is done after old node `id` of another partition is. The _Recv
  // of a data channel serves, too, unless it may carry a dead branch.
  NodeId signal(NodeId id, std::uint32_t home) {
    auto [at, added] = done_.try_emplace({id, home}, kNoNode);
    if (added) at->second = cross(id, {}, {out_.node(id)}, home_of(id), home, -1);
    return at->second;
  }

  NodeId cross(NodeId old_id, std::vector<Port> data, std::vector<NodeId> control,
               std::uint32_t from, std::uint32_t to, int port) {
    const NodeDef& producer = moved(old_id);  // valid until the next append()
    Channel channel;
    channel.id = ChannelId(result_.channels.size());
    channel.from = from;
    channel.to = to;
    channel.dtype = port < 0 ? DType::u8 : producer.out_types[std::size_t(port)];
    channel.shape = port < 0 ? PartialShape{0} : producer.out_shapes[std::size_t(port)];
    const std::uint32_t loop = loop_of(old_id);
    if (loop != 0) channel.loop = moved(begin_of(loop, from)).name;
    channel.name = port < 0 ? "^" + producer.name : producer.name + ":" + std::to_string(port);

    NodeDef send = made(kSendOp, producer, channel);
    send.inputs = std::move(data);
    send.control = std::move(control);
    send.device = result_.devices[from].name.text();
    NodeDef recv = made(kRecvOp, producer, channel);
    if (auto lag = producer.attrs.find(kLagAttr); lag != producer.attrs.end())
      recv.attrs.insert(*lag);
    if (loop != 0) recv.control = {out_.node(begin_of(loop, to))};
    const NodeId sent = append(std::move(send), from);
    if (loop != 0) sends_[{loop, from}].push_back(sent);
    recv.out_types = {channel.dtype};
    recv.out_shapes = {channel.shape};
    recv.device = result_.devices[to].name.text();
    result_.channels.push_back(std::move(channel));
    return append(std::move(recv), to);
  }

  static NodeDef made(std::string_view op, const NodeDef& producer, const Channel& channel) {
    NodeDef node;
    node.name = std::string(op == kSendOp ? "_send/" : "_recv/") + std::to_string(channel.id) +
                "/" + channel.name;
    node.op = std::string(op);
    node.attrs.emplace("channel", Attr(std::int64_t(channel.id)));
    node.site = producer.site;
    return node;
  }

  // The tensor of new port `at` in `space` of its partition. A list is in host memory, but may have
  // elements on the device, which are copied when it leaves.
  Port in_space(Port at, std::uint32_t home, MemorySpace space, bool to_device) {
    const NodeDef& producer = out_.graph().nodes[at.node];
    if (space_of(home) == MemorySpace::host) return at;
    const OpInfo& op = op_of(producer, ops_);
    const bool list = producer.out_types[at.index] == DType::list;
    if (!list && output_space(op, producer, at.index, space_of(home)) == space) return at;
    auto [copy, added] = copies_.try_emplace({at, home, space}, kNoNode);
    if (added) {
      NodeDef node;
      node.name = "_copy/" + std::to_string(home) + (to_device ? "/device/" : "/host/") +
                  producer.name + ":" + std::to_string(at.index);
      node.op = std::string(kCopyOp);
      node.attrs.emplace("to_device", Attr(to_device));
      node.inputs = {at};
      node.device = result_.devices[home].name.text();
      node.site = producer.site;
      node.out_types = {producer.out_types[at.index]};
      node.out_shapes = {producer.out_shapes[at.index]};
      copy->second = append(std::move(node), home);
    }
    return {copy->second, 0};
  }

  // Fetches are new ports already, so they are set after the rewriter has mapped the old ones.
  void finish() {
    out_.finish();
    step_.fetches = std::move(fetched_);
    if (!result_.channels.empty())
      step_.notes.push_back("partition: " + std::to_string(result_.devices.size()) +
                            " partitions, " + std::to_string(result_.channels.size()) +
                            " channels, " + std::to_string(copies_.size()) + " copies");
  }

  StepGraph& step_;
  const DistributedLoops& loops_;
  const OpRegistry& ops_;
  const Target& target_;
  Rewriter out_;
  std::map<NodeId, std::uint32_t> ended_by_;  // old _LoopNext -> its loop
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<NodeId>> sends_;  // loop, partition
  Partitions result_;
  std::vector<std::uint32_t> old_home_;
  std::vector<Port> fetched_;
  std::map<std::pair<Port, std::uint32_t>, NodeId> received_;              // old port
  std::map<std::pair<NodeId, std::uint32_t>, NodeId> done_;                // old node
  std::map<std::tuple<Port, std::uint32_t, MemorySpace>, NodeId> copies_;  // new port
};

}  // namespace

MemorySpace input_space(const OpInfo& op, const NodeDef& node, std::size_t flat, DType dtype,
                        MemorySpace device) {
  if (device == MemorySpace::host || dtype == DType::string || dtype == DType::list)
    return MemorySpace::host;
  switch (op.def.role) {
    case Role::send:
    case Role::loop_cond:
      return MemorySpace::host;
    case Role::copy: {
      const bool to_device = *node.attrs.find("to_device")->second.get<bool>();
      return to_device ? MemorySpace::host : MemorySpace::device;
    }
    case Role::loop_body:
    case Role::loop_next:  // the executor reads the predicate
      return flat == 0 ? MemorySpace::host : MemorySpace::device;
    case Role::switch_:
      if (flat == 1) return MemorySpace::host;  // likewise
      [[fallthrough]];
    default:
      if (on_host(node)) return MemorySpace::host;
      return input_arg(op, node, flat).host ? MemorySpace::host : MemorySpace::device;
  }
}

MemorySpace output_space(const OpInfo& op, const NodeDef& node, std::size_t flat,
                         MemorySpace device) {
  const DType dtype = node.out_types[flat];
  if (device == MemorySpace::host || dtype == DType::string || dtype == DType::list)
    return MemorySpace::host;
  switch (op.def.role) {
    case Role::placeholder:
    case Role::recv:
    case Role::loop_cond:
      return MemorySpace::host;
    case Role::copy: {
      const bool to_device = *node.attrs.find("to_device")->second.get<bool>();
      return to_device ? MemorySpace::device : MemorySpace::host;
    }
    default:
      if (on_host(node)) return MemorySpace::host;
      return output_arg(op, node, flat).host ? MemorySpace::host : MemorySpace::device;
  }
}

Expected<Partitions> partition(StepGraph& step, const DistributedLoops& loops,
                               const Target& target) {
  return Cutter(step, loops, target).run();
}

}  // namespace troupe
