#include "troupe/graph/control/frames.hpp"

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
    return std::move(out_);
  }

 private:
  Status bad(NodeId id, std::string_view what) const {
    return in_node(invalid_argument(std::string(what)), graph_.nodes[id]);
  }

  Status visit(NodeId id) {
    const NodeDef& node = graph_.nodes[id];
    const Role role = role_of(node, ops_);
    // The innermost of the frames that it takes something from; the others are around that one,
    // which only handles and feeds may be.
    std::uint32_t f = 0;
    for (Port in : node.inputs) f = std::max(f, from(in.node));
    for (NodeId c : node.control) f = std::max(f, from(c));
    for (Port in : node.inputs)
      if (from(in.node) != f && !is_handle(role_of(graph_.nodes[in.node], ops_)))
        return bad(id, "takes a value across the edge of a loop");
    for (NodeId c : node.control)
      if (from(c) != f) return bad(id, "comes after a node across the edge of a loop");
    if (role == Role::loop_body) {
      out_.frames.push_back({f, id, kNoNode});
      f = std::uint32_t(out_.frames.size()) - 1;
    } else if (role == Role::loop_next) {
      if (f == 0 || out_.frames[f].next != kNoNode) return bad(id, "ends a loop that it is not in");
      out_.frames[f].next = id;
    }
    out_.of_node.push_back(f);
    return ok_status();
  }

  std::uint32_t from(NodeId id) const { return out_.of_outputs(id); }

  const GraphDef& graph_;
  const OpRegistry& ops_;
  Frames out_;
};

}  // namespace

Expected<Frames> find_frames(const GraphDef& graph, const OpRegistry& ops) {
  return FrameSearch(graph, ops).run();
}

}  // namespace troupe
