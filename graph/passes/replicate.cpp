#include "graph/passes/replicate.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "graph/control/lowering/deadness.hpp"
#include "graph/control/lowering/frames.hpp"
#include "graph/control/state/state_ops.hpp"
#include "graph/detail/node_check.hpp"
#include "graph/passes/picked_rows.hpp"

namespace troupe {
namespace {

// The limit on nodes, inputs and control edges of all copies: a request of a few bytes must not
// take gigabytes.
constexpr std::size_t kMostCopied = std::size_t{1} << 22;

bool is_source(const OpDef& op) { return op.random || op.external.per_replica; }

// Whether it is one node for all replicas, which takes the values of each.
bool joins(const OpInfo& op) { return op.def.role == Role::kernel && !op.def.reduce.empty(); }

// Whether all replicas would write one file: its name, input 0, is the same for all of them. They
// would do so in different processes, and who came last would be a matter of time.
bool writes_one_file(const OpDef& op, const NodeDef& node, const std::vector<bool>& copied) {
  return op.external.resource == "files" && op.external.commits && !node.inputs.empty() &&
         !copied[node.inputs[0].node];
}

bool reduces(const OpInfo& op, const NodeDef& node, std::size_t input) {
  const std::string& arg = input_arg(op, node, input).name;
  return std::find(op.def.reduce.begin(), op.def.reduce.end(), arg) != op.def.reduce.end();
}

// Whether it is a Switch that may take different sides in different replicas.
bool parts_replicas(const GraphDef& graph, NodeId id, const std::vector<bool>& copied,
                    const OpRegistry& ops) {
  const NodeDef& node = graph.nodes[id];
  return role_of(node, ops) == Role::switch_ && copied[node.inputs[1].node];
}

struct PerReplica {
  std::vector<bool> copied;   // each replica has its own
  std::vector<bool> differs;  // it may be dead in one replica and not in another
};

// `own`: nodes that are copied for other reasons.
PerReplica find_copied(const GraphDef& graph, const Frames& frames, const OpRegistry& ops,
                       const std::vector<bool>& own) {
  PerReplica out{std::vector<bool>(graph.nodes.size(), false),
                 std::vector<bool>(graph.nodes.size(), false)};
  const std::vector<bool> dead = maybe_dead_nodes(graph.nodes, ops);
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    const OpInfo& op = op_of(node, ops);
    const bool write = op.is(External::Order::write);
    if (op.def.role == Role::control_trigger) {
      out.copied[id] = own[id];
      continue;
    }
    bool copied = is_source(op.def) || own[id], differs = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId in = node.inputs[i].node;
      copied = copied || (out.copied[in] && (!write || reduces(op, node, i)));
      differs = differs || out.differs[in] || parts_replicas(graph, in, out.copied, ops);
    }
    for (NodeId c : node.control) differs = differs || out.differs[c];
    if (op.def.role == Role::merge) differs = differs && dead[id];
    // A loop is only dead as a whole, whatever branches it contains.
    if (op.def.role == Role::loop_next || op.def.role == Role::function_return)
      differs = out.differs[frames.frames[frames.of_node[id]].body];
    if (!own[id] && writes_one_file(op.def, node, out.copied)) copied = false;
    out.copied[id] = (copied || differs) && !joins(op);
    out.differs[id] = differs;
  }
  return out;
}

// Writes that stay single although they reduce values that depend on a feed: the client trains on
// data that it feeds, and may expect each replica to get a part.
std::vector<NodeId> fed_alike(const GraphDef& graph, const OpRegistry& ops,
                              const std::vector<bool>& per_replica) {
  std::vector<bool> fed(graph.nodes.size(), false);
  std::vector<NodeId> alike;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    fed[id] = node.op == kFeedOp;
    bool reduced = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const NodeId from = node.inputs[i].node;
      if (!fed[from] || (joins(op_of(node, ops)) && per_replica[from])) continue;
      fed[id] = true;
      reduced |= reduces(op_of(node, ops), node, i);
    }
    if (reduced && !per_replica[id] && op_of(node, ops).is(External::Order::write))
      alike.push_back(id);
  }
  return alike;
}

// "/job:worker/task:1" for each task of the target, sorted.
std::vector<std::string> tasks_of(const Target& target) {
  std::set<DeviceName> tasks;
  for (const TargetDevice& device : target.devices) {
    DeviceName task;
    task.job = device.name.job;
    task.task = device.name.task;
    tasks.insert(std::move(task));
  }
  std::vector<std::string> out;
  for (const DeviceName& task : tasks) out.push_back(task.text());
  return out;
}

// Datasets that each replica reads in its own task, so that no elements are sent. An element
// depends on its number only, whoever reads it. A dataset stays single if it, or what reads it, is
// asked to be somewhere.
std::vector<bool> find_own_datasets(const GraphDef& graph, const OpRegistry& ops) {
  std::vector<bool> own(graph.nodes.size(), false);
  const auto anywhere = [](const NodeDef& node) {
    return node.device.empty() && node.colocate.empty();
  };
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    own[id] = is_dataset(node, ops) && anywhere(node);
    if (anywhere(node)) continue;
    for (std::size_t i = 0; i < handle_inputs(graph, node); ++i) own[node.inputs[i].node] = false;
  }
  return own;
}

// A loop is copied as a whole: if anything in it is copied, all of it is. `own`: nodes that are
// copied in any case.
PerReplica find_per_replica(const GraphDef& graph, const Frames& frames, const OpRegistry& ops,
                            std::vector<bool> own) {
  for (;;) {
    PerReplica found = find_copied(graph, frames, ops, own);
    bool more = false;
    for (NodeId id = 0; id < graph.nodes.size(); ++id)
      for (std::uint32_t f = frames.of_node[id]; f != 0; f = frames.frames[f].parent) {
        const NodeId body = frames.frames[f].body;
        if (found.copied[id] == found.copied[body] || joins(op_of(graph.nodes[id], ops))) continue;
        more = more || !own[id] || !own[body];
        own[id] = own[body] = true;
      }
    if (!more) return found;
  }
}

class Copier {
 public:
  Copier(StepGraph& step, const Frames& frames, const Target& target)
      : step_(step),
        ops_(*target.ops),
        n_(step.replicas),
        tasks_(tasks_of(target)),
        found_(find_per_replica(step.graph, frames, ops_,
                                tasks_.size() > 1
                                    ? find_own_datasets(step.graph, ops_)
                                    : std::vector<bool>(step.graph.nodes.size(), false))),
        per_replica_(found_.copied),
        own_lists_(find_own_lists()),
        copies_(step.graph.nodes.size()),
        out_(step) {}

  Status run() {
    const auto& nodes = step_.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id) ids_.emplace(nodes[id].name, id);
    if (size_of_copies() > kMostCopied)
      return resource_exhausted("the step is too large for " + std::to_string(n_) +
                                " replicas: its copies would have more than " +
                                std::to_string(kMostCopied) + " nodes and edges");
    std::size_t copied = 0;
    for (NodeId id = 0; id < nodes.size(); ++id) {
      if (!per_replica_[id]) {
        TROUPE_TRY(single(id));
        if (own_lists_[id]) TROUPE_TRY(copy(id));
        continue;
      }
      ++copied;
      TROUPE_TRY(copy(id));
      out_.map(id, copies_[id].front());  // a reader that is single gets replica 0's
    }
    const std::vector<NodeId> alike = fed_alike(step_.graph, ops_, per_replica_);
    const std::string first = alike.empty() ? std::string() : nodes[alike.front()].name;
    const auto targets = all_targets();
    auto fetches = join_fetches();
    out_.finish();
    step_.targets = targets;
    step_.fetches = std::move(fetches);
    step_.notes.push_back("replicate: " + std::to_string(copied) + " nodes, " + std::to_string(n_) +
                          " times");
    if (!alike.empty())
      step_.notes.push_back(std::string(kReplicasAlike) + std::to_string(n_) +
                            " replicas do not share the work of '" + first + "'" +
                            (alike.size() > 1
                                 ? " and " + std::to_string(alike.size() - 1) + " other updates"
                                 : std::string()) +
                            ": it takes fed data, and a feed is not split; read the data from a "
                            "dataset, of which each replica takes its part");
    return ok_status();
  }

 private:
  // Avoids sending lists: a list that is the same for all replicas, such as the empty one that a
  // loop begins with, is made by each of them. The values pushed onto it are computed once.
  std::vector<bool> find_own_lists() const {
    const auto& nodes = step_.graph.nodes;
    std::vector<bool> own(nodes.size(), false);
    for (NodeId id = tasks_.size() > 1 ? NodeId(nodes.size()) : 0; id-- > 0;) {
      if (!per_replica_[id] && !own[id]) continue;
      for (Port in : nodes[id].inputs) {
        const OpDef& op = op_of(nodes[in.node], ops_).def;
        if (nodes[in.node].out_types[in.index] == DType::list && op.role == Role::kernel &&
            !op.stateful)
          own[in.node] = !per_replica_[in.node];
      }
    }
    return own;
  }

  std::size_t size_of_copies() const {
    std::size_t size = 0;
    const auto& nodes = step_.graph.nodes;
    for (NodeId id = 0; id < nodes.size(); ++id) {
      if (joins(op_of(nodes[id], ops_)))
        size += std::size_t(std::count_if(nodes[id].inputs.begin(), nodes[id].inputs.end(),
                                          [&](Port in) { return per_replica_[in.node]; }));
      if (!per_replica_[id] && !own_lists_[id]) continue;
      size += 1 + nodes[id].inputs.size();
      for (NodeId c : nodes[id].control) {
        const bool all = per_replica_[c] && op_of(nodes[c], ops_).is(External::Order::write);
        size += all ? std::size_t(n_) : 1;
      }
    }
    return size * std::size_t(n_);
  }

  // Old control inputs of a node in new numbers; replica -1 is a single node.
  std::vector<NodeId> control(const NodeDef& node, std::int32_t replica) {
    std::vector<NodeId> out;
    for (NodeId c : node.control) {
      const bool one =
          replica >= 0 && !op_of(step_.graph.nodes[c], ops_).is(External::Order::write);
      if (!per_replica_[c])
        out.push_back(out_.node(c));
      else if (one)
        out.push_back(copies_[c][std::size_t(replica)]);
      else if (replica >= 0 && found_.differs[c])
        out.insert(out.end(), {copies_[c][std::size_t(replica)], trigger_after(c)});
      else
        out.insert(out.end(), copies_[c].begin(), copies_[c].end());
    }
    return out;
  }

  // A node after all copies of a write in a branch, whether or not the replicas took the branch.
  NodeId trigger_after(NodeId write) {
    auto [at, added] = triggers_.try_emplace(write, kNoNode);
    if (!added) return at->second;
    const NodeDef& first = out_.graph().nodes[copies_[write].front()];
    NodeDef trigger;
    trigger.name = "_after/" + step_.graph.nodes[write].name + "/replicas";
    trigger.op = "ControlTrigger";
    trigger.control = copies_[write];
    trigger.colocate = {first.name};
    trigger.site = first.site;
    return at->second = out_.append(std::move(trigger));
  }

  Status single(NodeId id) {
    NodeDef node = step_.graph.nodes[id];
    if (found_.differs[id])
      return in_node(invalid_argument("it takes what all replicas have, in a branch that some of "
                                      "them may not take"),
                     node);
    if (joins(op_of(node, ops_))) {
      TROUPE_TRY(join_inputs(node));
    } else {
      for (Port& in : node.inputs) in = out_.port(in);
    }
    node.control = control(node, -1);
    out_.map(id, out_.append(std::move(node)));
    return ok_status();
  }

  // Each copied input becomes all its copies, in replica order.
  Status join_inputs(NodeDef& node) {
    std::vector<Port> inputs;
    for (Port in : node.inputs) {
      if (!per_replica_[in.node])
        inputs.push_back(out_.port(in));
      else
        for (NodeId copy : copies_[in.node]) inputs.push_back({copy, in.index});
    }
    if (inputs.size() > detail::kMaxPorts)
      return in_node(resource_exhausted(std::to_string(n_) + " replicas would give it " +
                                        std::to_string(inputs.size()) + " inputs, more than " +
                                        std::to_string(detail::kMaxPorts)),
                     node);
    node.inputs = std::move(inputs);
    node.attrs.insert_or_assign("N", Attr(std::int64_t(node.inputs.size())));
    return ok_status();
  }

  Status copy(NodeId id) {
    for (std::int32_t r = 0; r < n_; ++r) TROUPE_TRY(copy(id, r));
    return ok_status();
  }

  Status copy(NodeId id, std::int32_t replica) {
    NodeDef node = step_.graph.nodes[id];
    if (auto write = node.attrs.find(kBehindLoopAttr); write != node.attrs.end())
      return in_node(invalid_argument("it writes a variable in a loop that each replica goes "
                                      "through by itself; what replicas make together is written "
                                      "outside of loops"),
                     named(node, *write->second.get<std::string>()));
    const auto has_copies = [&](NodeId other) { return per_replica_[other] || own_lists_[other]; };
    for (Port& in : node.inputs)
      in = has_copies(in.node) ? Port{copies_[in.node][std::size_t(replica)], in.index}
                               : out_.port(in);
    node.control = control(node, replica);
    node.replica = replica;
    node.name = replica_name(node.name, replica);
    if (ids_.count(node.name))
      return in_node(invalid_argument("the name is the one of a copy made for a replica"), node);
    for (std::string& other : node.colocate) {
      auto old = ids_.find(other);
      if (old != ids_.end() && has_copies(old->second)) other = replica_name(other, replica);
    }
    if (op_of(node, ops_).is(External::Order::write) && found_.differs[id]) note_branch(id, node);
    if (op_of(node, ops_).takes_handles())
      node.attrs.insert_or_assign("replicas", Attr(std::int64_t(n_)));
    else if (node.device.empty() && node.colocate.empty() && tasks_.size() > 1 &&
             picks_rows_of(step_.graph, step_.graph.nodes[id], ops_) == kNoNode)
      node.device = tasks_[std::size_t(replica) % tasks_.size()];
    copies_[id].push_back(out_.append(std::move(node)));
    return ok_status();
  }

  static NodeDef named(NodeDef node, const std::string& name) {
    node.name = name;
    return node;
  }

  // A write in a branch: replicas that do not take the branch do not contribute.
  void note_branch(NodeId id, NodeDef& copy) const {
    const NodeDef& node = step_.graph.nodes[id];
    const OpInfo& op = op_of(node, ops_);
    bool own = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      own = own || (per_replica_[node.inputs[i].node] && reduces(op, node, i));
    copy.attrs.insert_or_assign(std::string(kSomeReplicasAttr), Attr(true));
    if (!own) copy.attrs.insert_or_assign(std::string(kCombineFirstAttr), Attr(true));
  }

  std::vector<NodeId> all_targets() const {
    std::vector<NodeId> out;
    for (NodeId id : step_.targets) {
      if (per_replica_[id])
        out.insert(out.end(), copies_[id].begin(), copies_[id].end());
      else
        out.push_back(out_.node(id));
    }
    return out;
  }

  std::vector<Port> join_fetches() {
    std::map<Port, Port> joined;  // a repeated fetch is joined once
    std::vector<Port> out;
    for (Port fetch : step_.fetches) {
      auto [at, added] = joined.try_emplace(fetch);
      if (added) at->second = join(fetch);
      out.push_back(at->second);
    }
    return out;
  }

  Port join(Port fetch) {
    const NodeDef& node = step_.graph.nodes[fetch.node];
    const DType dtype = node.out_types[fetch.index];
    const PartialShape& shape = node.out_shapes[fetch.index];
    if (!per_replica_[fetch.node]) return out_.port(fetch);
    const bool scalar = is_float(dtype) && shape.fully_known() && shape.shape().rank() == 0;
    // The sum of numbers of few bits may be beyond the largest of them, where their mean is not.
    const DType summed = wide(dtype);
    const bool have_ops = ops_.find("AddN") && ops_.find("Mul") && ops_.find("Const") &&
                          (summed == dtype || ops_.find("Cast"));
    if (!scalar || !have_ops) {
      step_.notes.push_back("replicate: fetch '" + node.name + "' is replica 0's");
      return {copies_[fetch.node].front(), fetch.index};
    }
    const std::string base = node.name + "/replica_mean" +
                             (fetch.index ? "_" + std::to_string(fetch.index) : std::string());
    std::vector<Port> parts;
    for (NodeId c : copies_[fetch.node]) parts.push_back({c, fetch.index});
    // These nodes are placed like replica 0.
    if (summed != dtype)
      for (std::size_t r = 0; r < parts.size(); ++r)
        parts[r] = cast(node, base + "_part_" + std::to_string(r), parts[r], dtype, summed);
    const NodeId sum = scalar_node(node, base + "_sum", "AddN", std::move(parts), summed,
                                   {{"T", Attr(summed)}, {"N", Attr(std::int64_t(n_))}});
    const NodeId scale = scalar_node(node, base + "_scale", "Const", {}, summed,
                                     {{"T", Attr(summed)}, {"value", Attr(reciprocal(summed))}});
    const std::string name = summed == dtype ? base : base + "_wide";
    const Port mean{
        scalar_node(node, name, "Mul", {{sum, 0}, {scale, 0}}, summed, {{"T", Attr(summed)}}), 0};
    return summed == dtype ? mean : cast(node, base, mean, summed, dtype);
  }

  Port cast(const NodeDef& like, std::string name, Port x, DType from, DType to) {
    return {scalar_node(like, std::move(name), "Cast", {x}, to,
                        {{"from", Attr(from)}, {"to", Attr(to)}}),
            0};
  }

  Tensor reciprocal(DType dtype) const {
    const double value = 1.0 / n_;
    return dtype == DType::f64 ? Tensor::scalar(value) : Tensor::scalar(float(value));
  }

  NodeId scalar_node(const NodeDef& like, std::string name, std::string op,
                     std::vector<Port> inputs, DType dtype, AttrMap attrs) {
    NodeDef node;
    node.name = std::move(name);
    node.op = std::move(op);
    node.inputs = std::move(inputs);
    node.attrs = std::move(attrs);
    node.device = like.device;
    if (node.device.empty() && tasks_.size() > 1) node.device = tasks_.front();
    node.site = like.site;
    node.out_types = {dtype};
    node.out_shapes = {PartialShape(Shape{})};
    return out_.append(std::move(node));
  }

  StepGraph& step_;
  const OpRegistry& ops_;
  const std::int32_t n_;
  const std::vector<std::string> tasks_;
  const PerReplica found_;
  const std::vector<bool>& per_replica_;
  std::map<NodeId, NodeId> triggers_;  // after all copies of an old node
  const std::vector<bool> own_lists_;  // single nodes of which each replica has a copy as well
  std::vector<std::vector<NodeId>> copies_;
  std::unordered_map<std::string_view, NodeId> ids_;  // by name
  Rewriter out_;
};

}  // namespace

Status replicate(StepGraph& step, const Target& target) {
  if (step.replicas <= 1) return ok_status();
  TROUPE_TRY(Frames frames, find_frames(step.graph, *target.ops));
  return Copier(step, frames, target).run();
}

}  // namespace troupe
