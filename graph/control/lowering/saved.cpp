// Of lowering: what gradient functions name of the runs of functions.
#include "graph/control/lowering/detail/inline.hpp"
#include "graph/control/state/state.hpp"

namespace troupe::detail {
namespace {

template <class T>
const T& attr(const NodeDef& node, const char* name) {
  return *node.attrs.at(name).get<T>();
}

// Where a call's run is among its outputs: behind the state that it gives, too.
std::size_t port_of_run(const FunctionDef& f, NodeId id, std::size_t port) {
  const bool run = id != kNoNode && !f.nodes[id].out_types.empty() &&
                   f.nodes[id].out_types.back() == DType::resource;
  return run ? saved_port(f.nodes[id]) : port;
}

// Does the node count on no more than there is?
Status check_type(const NodeDef& node, const FunctionDef& f, NodeId id, std::size_t port,
                  DType wanted) {
  auto bad = [&](const std::string& why) { return in_node(invalid_argument(why), node); };
  if (id == kNoNode || port >= f.nodes[id].out_types.size() ||
      f.nodes[id].out_types[port] != wanted)
    return bad(called(f) + " has no such output of a node that it names");
  const PartialShape& is = f.nodes[id].out_shapes[port];
  auto shape = PartialShape::merge(node.out_shapes[0], is);
  if (wanted == DType::resource || (shape.ok() && *shape == is)) return ok_status();
  return bad("it says more of the shape than " + called(f) + " does");
}

}  // namespace

Expected<Value> Inliner::saved(const NodeDef& node, const Value& handle, std::uint32_t frame) {
  if (node.op == kSavedOp) return saved_value(node, handle, frame);
  if (node.op == kSavedListOp) return saved_list(node, handle, frame);
  TROUPE_TRY(const Inlined* body, run_of_loop(node, handle));
  LoopFrame& loop = frames_[body->frame];
  TROUPE_TRY(Value number, trips(loop));
  return carry(number, loop.parent, frame);
}

// A value of the function that the gradient function belongs to, as its run left it.
Expected<Value> Inliner::saved_value(const NodeDef& node, const Value& handle,
                                     std::uint32_t frame) {
  auto bad = [&](const std::string& why) { return in_node(invalid_argument(why), node); };
  if (handle.run == kNoRun) return bad("it takes what a call saved, not a handle");
  const auto branch = std::size_t(attr<std::int64_t>(node, "branch"));
  const auto& function = attr<std::string>(node, "function");
  auto port = std::size_t(attr<std::int64_t>(node, "port"));
  const std::vector<Inlined>& run = runs_[handle.run];
  if (branch >= run.size() || original_function(run[branch].function->name) != function)
    return bad("the call that it takes from does not run " + quoted(function));
  const FunctionDef& f = *run[branch].function;
  const NodeId id = find(f, attr<std::string>(node, "node"));
  if (node.out_types[0] == DType::resource) port = port_of_run(f, id, port);
  TROUPE_TRY(check_type(node, f, id, port, node.out_types[0]));
  Value value = run[branch].values[id][port];
  value.waits = false;
  return carry(value, run[branch].frame, frame);
}

// The body of the loop that left `handle`, in its iterations.
Expected<const Inlined*> Inliner::run_of_loop(const NodeDef& node, const Value& handle) const {
  if (handle.run == kNoRun || runs_[handle.run].empty() || !runs_[handle.run].back().repeated)
    return in_node(invalid_argument("it takes what a loop saved, not this"), node);
  return &runs_[handle.run].back();
}

// From the outermost loop to the value; and back outwards, a list of lists.
Expected<Value> Inliner::saved_list(const NodeDef& node, const Value& handle, std::uint32_t frame) {
  auto bad = [&](const std::string& why) { return in_node(invalid_argument(why), node); };
  const auto& functions = attr<std::vector<std::string>>(node, "functions");
  const auto& nodes = attr<std::vector<std::string>>(node, "nodes");
  const auto& ports = attr<std::vector<std::int64_t>>(node, "ports");
  if (nodes.empty() || functions.size() != nodes.size() || ports.size() != nodes.size())
    return bad("it names no value of a loop's body");
  const DType wanted = attr<DType>(node, "T");
  std::vector<std::uint32_t> loops;
  Value value = handle;
  for (std::size_t level = 0; level < nodes.size(); ++level) {
    const bool last = level + 1 == nodes.size();
    TROUPE_TRY(const Inlined* body, run_of_loop(node, value));
    if (last && nodes[level].empty() && level > 0 && wanted == DType::i64) {
      TROUPE_TRY(value, trips(frames_[body->frame]));
      break;
    }
    const FunctionDef& f = *body->function;
    if (original_function(f.name) != functions[level])
      return bad("the loop that it takes from does not repeat " + quoted(functions[level]));
    const NodeId id = find(f, nodes[level]);
    auto port = std::size_t(ports[level]);
    if (!last) port = port_of_run(f, id, port);
    // What is inside of a list has the shape that is said of the innermost one.
    if (!last && (id == kNoNode || port >= body->values[id].size()))
      return bad(called(f) + " has no such node");
    if (last) TROUPE_TRY(check_type(node, f, id, port, wanted));
    value = body->values[id][port];
    loops.push_back(body->frame);
  }
  if (value.run != kNoRun || loops.empty()) return bad("it names no value of a loop's body");
  for (std::size_t level = loops.size(); level-- > 0;) {
    LoopFrame& loop = frames_[loops[level]];
    TROUPE_TRY(value, keep(loop, value));
    if (level > 0 && loop.parent != loops[level - 1])
      return bad("it names a loop that is not in the body of the one before");
  }
  value.waits = false;
  return carry(value, frames_[loops[0]].parent, frame);
}

}  // namespace troupe::detail
