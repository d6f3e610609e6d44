#include "graph/control/distribute/distributed_loops.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace troupe {
namespace {

std::int64_t window_of(const NodeDef& begin) {
  const auto at = begin.attrs.find(kWindowAttr);
  return at == begin.attrs.end() ? 1 : *at->second.get<std::int64_t>();
}

// One device's part of a loop, under construction.
struct Part {
  std::string device;
  std::set<std::uint32_t> carried;  // indices of outputs of the loop's _LoopBody
  LoopPart made;
  std::vector<NodeId> nodes;  // new nodes that an iteration waits for

  // The index in this part of output k of the loop.
  std::uint32_t place_of(std::uint32_t k) const {
    return std::uint32_t(std::distance(carried.begin(), carried.find(k)));
  }
};

struct Loop {
  NodeId begin = kNoNode, next = kNoNode;  // in the old step
  std::uint32_t variables = 0;
  std::vector<Part> parts;        // the leader first
  std::vector<std::size_t> home;  // by variable: the part that has its last value
  std::vector<bool> read;         // by variable: its last value is read after the loop

  bool is_distributed() const { return parts.size() > 1; }
  Part& on(const std::string& device) {
    return *std::find_if(parts.begin(), parts.end(),
                         [&](const Part& p) { return p.device == device; });
  }
};

class LoopDistributor {
 public:
  LoopDistributor(StepGraph& step, const Frames& frames, const OpRegistry& ops)
      : step_(step), nodes_(step.graph.nodes), frames_(frames), ops_(ops), out_(step) {}

  // Finds the parts of the loops. Returns whether any loop has several.
  bool find_parts() {
    loops_.resize(frames_.frames.size());
    for (std::uint32_t f = 1; f < loops_.size(); ++f) {
      loops_[f].begin = frames_.frames[f].body;
      loops_[f].next = frames_.frames[f].next;
      loops_[f].variables = std::uint32_t(nodes_[loops_[f].next].out_types.size());
      add_part(f, nodes_[loops_[f].begin].device);
    }
    for (NodeId id = 0; id < nodes_.size(); ++id)
      if (!is_handle(role_of(nodes_[id], ops_)))
        for (std::uint32_t f = frames_.of_node[id]; f != 0; f = frames_.frames[f].parent)
          add_part(f, nodes_[id].device);
    return std::any_of(loops_.begin(), loops_.end(),
                       [](const Loop& l) { return l.is_distributed(); });
  }

  DistributedLoops run() {
    find_reads();
    for (std::uint32_t f = std::uint32_t(loops_.size()) - 1; f > 0; --f)
      if (loops_[f].is_distributed()) find_carried(f);
    for (NodeId id = 0; id < nodes_.size(); ++id) move(id);
    out_.finish();
    made_.parts.resize(loops_.size());
    for (std::uint32_t f = 1; f < loops_.size(); ++f)
      for (const Part& part : loops_[f].parts)
        if (loops_[f].is_distributed()) made_.parts[f].push_back(part.made);
    return std::move(made_);
  }

 private:
  void add_part(std::uint32_t f, const std::string& device) {
    auto& parts = loops_[f].parts;
    const auto same = [&](const Part& p) { return p.device == device; };
    if (std::none_of(parts.begin(), parts.end(), same)) parts.push_back({.device = device});
  }

  // --- reads ---

  void find_reads() {
    for (Loop& loop : loops_) loop.read.assign(loop.variables, false);
    const auto note = [&](Port p) {
      const std::uint32_t f = frames_.of_node[p.node];
      if (f != 0 && loops_[f].next == p.node) loops_[f].read[p.index] = true;
    };
    for (const NodeDef& node : nodes_)
      for (Port in : node.inputs) note(in);
    for (Port fetch : step_.fetches) note(fetch);
  }

  // The device that holds the port's value.
  const std::string& device_of(Port p) {
    const std::uint32_t f = frames_.of_node[p.node];
    if (f != 0 && loops_[f].next == p.node && loops_[f].is_distributed())
      return loops_[f].parts[loops_[f].home[p.index]].device;
    return nodes_[p.node].device;
  }

  // REQUIRES: this was done for its inner loops.
  void find_carried(std::uint32_t f) {
    Loop& loop = loops_[f];
    for (NodeId id = loop.begin + 1; id < loop.next; ++id) {
      const std::uint32_t inner = frames_.of_node[id];
      if (inner == f)
        for (Port in : nodes_[id].inputs) carry(loop, in, nodes_[id].device);
      else if (inner != 0 && loops_[inner].begin == id && frames_.frames[inner].parent == f)
        find_carried_by(loop, loops_[inner]);
    }
    for (std::uint32_t v = 0; v < loop.variables; ++v) loop.home.push_back(find_home(loop, v));
    carry(loop, nodes_[loop.next].inputs[0], loop.parts[0].device);
    for (std::uint32_t v = 0; v < loop.variables; ++v)
      if (loop.read[v]) loop.parts[loop.home[v]].carried.insert(v);
    for (Part& part : loop.parts) close(loop, part);
  }

  void carry(Loop& loop, Port in, const std::string& device) {
    if (in.node == loop.begin) loop.on(device).carried.insert(in.index);
  }

  // Carries the inputs of an inner loop, or of a recursive function, which is on one device.
  void find_carried_by(Loop& loop, const Loop& inner) {
    const std::vector<Port>& inputs = nodes_[inner.begin].inputs;
    if (!inner.is_distributed()) {
      for (Port in : inputs) carry(loop, in, inner.parts[0].device);
      return;
    }
    carry(loop, inputs[0], inner.parts[0].device);
    for (const Part& part : inner.parts)
      for (std::uint32_t k : part.carried) carry(loop, inputs[k + 1], part.device);
  }

  // The part that computes the next value or, if that is an output of the _LoopBody, one that
  // carries it.
  std::size_t find_home(Loop& loop, std::uint32_t v) {
    const Port next = nodes_[loop.next].inputs[v + 1];
    const auto at = std::find_if(loop.parts.begin(), loop.parts.end(), [&](const Part& part) {
      return next.node == loop.begin ? part.carried.contains(next.index)
                                     : part.device == device_of(next);
    });
    return at == loop.parts.end() ? 0 : std::size_t(at - loop.parts.begin());
  }

  // A part that has a variable also has its next value, if that is an output of the _LoopBody.
  void close(const Loop& loop, Part& part) {
    std::vector<std::uint32_t> open(part.carried.begin(), part.carried.end());
    while (!open.empty()) {
      const std::uint32_t k = open.back();
      open.pop_back();
      if (k >= loop.variables) continue;
      const Port next = nodes_[loop.next].inputs[k + 1];
      if (next.node == loop.begin && part.carried.insert(next.index).second)
        open.push_back(next.index);
    }
  }

  // --- the new step ---

  void move(NodeId id) {
    const std::uint32_t f = frames_.of_node[id];
    if (f != 0 && loops_[f].is_distributed() && id == loops_[f].begin) return make_begins(f);
    if (f != 0 && loops_[f].is_distributed() && id == loops_[f].next) return make_nexts(f);
    NodeDef node = std::move(nodes_[id]);
    const bool begins = f != 0 && loops_[f].begin == id;
    const std::uint32_t takes_from = begins ? frames_.frames[f].parent : f;
    for (Port& in : node.inputs) in = port(in, takes_from, node.device);
    node.control = control(node.control, takes_from, node.device);
    const bool ends = f != 0 && loops_[f].next == id;
    const NodeId made = append(std::move(node), f);
    if (ends) stands_in(made, frames_.frames[f].parent);
    out_.map(id, made);
  }

  // The new port for an old one, read on a device in frame f. Notes that its node is read there.
  Port port(Port old, std::uint32_t f, const std::string& device) {
    Port now;
    if (f != 0 && loops_[f].is_distributed() && old.node == loops_[f].begin) {
      const Part& part = loops_[f].on(device);
      now = {part.made.begin, part.place_of(old.index)};
    } else {
      now = out_.port(old);
    }
    if (out_.graph().nodes[now.node].device == device) read_.insert(now.node);
    return now;
  }

  std::vector<NodeId> control(const std::vector<NodeId>& old, std::uint32_t f,
                              const std::string& device) {
    std::vector<NodeId> now;
    for (NodeId c : old) {
      const std::uint32_t from = frames_.of_node[c];
      if (from != 0 && loops_[from].is_distributed() && loops_[from].next == c)
        for (const Part& part : loops_[from].parts) now.push_back(part.made.next);
      else if (f != 0 && loops_[f].is_distributed() && loops_[f].begin == c)
        now.push_back(loops_[f].on(device).made.begin);
      else
        now.push_back(out_.node(c));
    }
    for (NodeId c : now)
      if (out_.graph().nodes[c].device == device) read_.insert(c);
    return now;
  }

  NodeId append(NodeDef node, std::uint32_t f) {
    const NodeId made = out_.append(std::move(node));
    stands_in(made, f);
    return made;
  }

  // Records a new node whose outputs are in the iterations of a loop, which wait for it.
  void stands_in(NodeId made, std::uint32_t f) {
    made_.of_node.resize(made + 1, 0);
    if (f == 0 || !loops_[f].is_distributed()) return;
    made_.of_node[made] = f;
    loops_[f].on(out_.graph().nodes[made].device).nodes.push_back(made);
  }

  // The leader's part keeps the name; the others get a suffix, which keeps the loop's name before
  // '/'.
  std::string name_of_part(const NodeDef& node, std::size_t part) const {
    if (part == 0) return node.name;
    const std::string name = original_name(node) + "_" + std::to_string(part);
    return node.replica < 0 ? name : replica_name(name, node.replica);
  }

  void make_begins(std::uint32_t f) {
    Loop& loop = loops_[f];
    const std::uint32_t around = frames_.frames[f].parent;
    const NodeDef begin = std::move(nodes_[loop.begin]);
    const std::string& leader = loop.parts[0].device;
    Port first = port(begin.inputs[0], around, leader);
    if (!begin.control.empty())
      first = hand_on(begin, "first", first, control(begin.control, around, leader), around);
    for (std::size_t p = 0; p < loop.parts.size(); ++p) {
      Part& part = loop.parts[p];
      NodeDef node = begin;
      node.name = name_of_part(begin, p);
      node.device = part.device;
      node.inputs = {first};
      node.control.clear();
      node.out_types.clear();
      node.out_shapes.clear();
      for (std::uint32_t k : part.carried) {
        node.inputs.push_back(port(begin.inputs[k + 1], around, part.device));
        node.out_types.push_back(begin.out_types[k]);
        node.out_shapes.push_back(begin.out_shapes[k]);
      }
      if (part.device == leader) read_.insert(first.node);
      part.made.begin = append(std::move(node), f);
    }
    out_.map(loop.begin, loop.parts[0].made.begin);
  }

  // A predicate for all parts, available after the nodes in `control`.
  Port hand_on(const NodeDef& like, std::string_view name, Port predicate,
               std::vector<NodeId> control, std::uint32_t f) {
    NodeDef node;
    node.name = like.name + "/" + std::string(name);
    node.op = std::string(kLoopCondOp);
    node.device = like.device;
    node.replica = like.replica;
    node.site = like.site;
    node.inputs = {predicate};
    node.control = std::move(control);
    node.out_types = {DType::bool_};
    node.out_shapes = {PartialShape::scalar()};
    return {append(std::move(node), f), 0};
  }

  // The nodes that no other node of their part waits for.
  std::vector<NodeId> last_of(const Part& part) const {
    std::vector<NodeId> out;
    for (NodeId n : part.nodes)
      if (!read_.contains(n)) out.push_back(n);
    return out;
  }

  // The end of an iteration of a part; it runs even if branches in the iteration are dead.
  NodeId make_done(const NodeDef& next, std::size_t p, const Part& part, std::int64_t lag) {
    NodeDef node;
    node.name = name_of_part(next, p) + "/done";
    node.op = "ControlTrigger";
    node.device = part.device;
    node.replica = next.replica;
    node.site = next.site;
    node.attrs.emplace(kLagAttr, Attr(lag));
    node.control = last_of(part);
    if (node.control.empty()) node.control = {part.made.begin};
    return out_.append(std::move(node));
  }

  void make_nexts(std::uint32_t f) {
    Loop& loop = loops_[f];
    const NodeDef next = std::move(nodes_[loop.next]);
    const std::int64_t lag = window_of(out_.graph().nodes[loop.parts[0].made.begin]) - 1;
    const Port again = port(next.inputs[0], f, loop.parts[0].device);
    std::vector<NodeId> done;
    for (std::size_t p = 0; p < loop.parts.size(); ++p) {
      done.push_back(make_done(next, p, loop.parts[p], lag));
      made_.of_node.resize(done.back() + 1, 0);
      made_.of_node[done.back()] = f;
    }
    const Port told =
        hand_on(next, "again", again, std::vector<NodeId>(done.begin() + 1, done.end()), f);
    for (std::size_t p = 0; p < loop.parts.size(); ++p) {
      Part& part = loop.parts[p];
      NodeDef node = next;
      node.name = name_of_part(next, p);
      node.device = part.device;
      node.inputs = {told};
      node.control = {done[p]};
      node.out_types.clear();
      node.out_shapes.clear();
      for (std::uint32_t k : part.carried) {
        if (k >= loop.variables) break;
        node.inputs.push_back(port(next.inputs[k + 1], f, part.device));
        node.out_types.push_back(next.out_types[k]);
        node.out_shapes.push_back(next.out_shapes[k]);
      }
      part.made.next = out_.append(std::move(node));
    }
    for (const Part& part : loop.parts) stands_in(part.made.next, frames_.frames[f].parent);
    out_.map(loop.next, loop.parts[0].made.next);
    for (std::uint32_t v = 0; v < loop.variables; ++v)
      if (const Part& home = loop.parts[loop.home[v]]; home.carried.contains(v))
        out_.map_port({loop.next, v}, {home.made.next, home.place_of(v)});
  }

  StepGraph& step_;
  std::vector<NodeDef>& nodes_;
  const Frames& frames_;
  const OpRegistry& ops_;
  Rewriter out_;
  std::vector<Loop> loops_;  // by frame
  std::set<NodeId> read_;    // new nodes that a node of their device waits for
  DistributedLoops made_;
};

}  // namespace

DistributedLoops distribute_loops(StepGraph& step, const Frames& frames, const OpRegistry& ops) {
  LoopDistributor distributor(step, frames, ops);
  return distributor.find_parts() ? distributor.run() : DistributedLoops();
}

}  // namespace troupe
