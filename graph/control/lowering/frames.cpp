#include "graph/control/lowering/frames.hpp"

#include <algorithm>

namespace troupe {
namespace {

class FrameSearch {
 public:
  FrameSearch(const GraphDef& graph, const OpRegistry& ops) : graph_(graph), ops_(ops) {
    out_.frames.emplace_back();
  }

  Expected<Frames> run() {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) TROUPE_TRY(visit(id));
    for (std::size_t f = 1; f < out_.frames.size(); ++f)
      if (out_.frames[f].next == kNoNode)
        return bad(out_.frames[f].body, "begins a loop that does not end");
    for (NodeId id : calls_)
      if (out_.called_by(id, function_number(graph_.nodes[id])) == 0)
        return bad(id, "calls a function that is not around it");
    return std::move(out_);
  }

 private:
  Status bad(NodeId id, std::string_view what) const {
    return in_node(invalid_argument(std::string(what)), graph_.nodes[id]);
  }

  Status visit(NodeId id) {
    const NodeDef& node = graph_.nodes[id];
    const Role role = role_of(node, ops_);
    // The innermost frame of its inputs. Only handles and feeds may come from the frames around
    // that one.
    std::uint32_t f = 0;
    for (Port in : node.inputs) f = std::max(f, from(in.node));
    for (NodeId c : node.control) f = std::max(f, from(c));
    for (Port in : node.inputs)
      if (from(in.node) != f && !is_handle(role_of(graph_.nodes[in.node], ops_)))
        return bad(id, "takes a value across the edge of a loop");
    for (NodeId c : node.control)
      if (from(c) != f) return bad(id, "comes after a node across the edge of a loop");
    if (role == Role::loop_body || role == Role::function_body) {
      out_.frames.push_back({f, id, kNoNode});
      f = std::uint32_t(out_.frames.size()) - 1;
      if (role == Role::function_body) TROUPE_TRY(begin_function(f));
    } else if (role == Role::loop_next || role == Role::function_return) {
      if (f == 0 || out_.frames[f].next != kNoNode ||
          out_.frames[f].is_function() != (role == Role::function_return))
        return bad(id, "ends a loop that it is not in");
      out_.frames[f].next = id;
    } else if (role == Role::invoke) {
      calls_.push_back(id);
    }
    out_.of_node.push_back(f);
    return ok_status();
  }

  // Function 0 is called from outside; the others are in its frame.
  Status begin_function(std::uint32_t f) {
    Frames::Frame& frame = out_.frames[f];
    frame.function = function_number(graph_.nodes[frame.body]);
    const Frames::Frame& around = out_.frames[frame.parent];
    if (frame.function != 0 && (!around.is_function() || around.function != 0))
      return bad(frame.body, "begins a function that is not called from outside");
    frame.leader = frame.function == 0 ? f : frame.parent;
    if (!out_.functions.emplace(std::pair(frame.leader, frame.function), f).second)
      return bad(frame.body, "begins a function that is there already");
    return ok_status();
  }

  std::uint32_t from(NodeId id) const { return out_.of_outputs(id); }

  const GraphDef& graph_;
  const OpRegistry& ops_;
  std::vector<NodeId> calls_;
  Frames out_;
};

}  // namespace

std::uint32_t function_number(const NodeDef& node) {
  return std::uint32_t(*node.attrs.find("function")->second.get<std::int64_t>());
}

std::uint32_t Frames::called_by(NodeId id, std::uint32_t function) const {
  std::uint32_t around = of_node[id];
  while (around != 0 && !frames[around].is_function()) around = frames[around].parent;
  const auto at = functions.find({frames[around].leader, function});
  return at == functions.end() ? 0 : at->second;
}

Expected<Frames> find_frames(const GraphDef& graph, const OpRegistry& ops) {
  return FrameSearch(graph, ops).run();
}

Status functions_on_one_device(const GraphDef& graph, const Frames& frames, const OpRegistry& ops) {
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const NodeDef& node = graph.nodes[id];
    if (is_handle(role_of(node, ops))) continue;
    for (std::uint32_t f = frames.of_node[id]; f != 0; f = frames.frames[f].parent) {
      if (!frames.frames[f].is_function()) continue;
      const NodeDef& leader = graph.nodes[frames.frames[frames.frames[f].leader].body];
      if (node.device == leader.device) continue;
      return in_node(unimplemented("it is on " + node.device +
                                   ", the call of the function around "
                                   "it, which calls itself, on " +
                                   leader.device + "; such a function runs on one device"),
                     node);
    }
  }
  return ok_status();
}

}  // namespace troupe
