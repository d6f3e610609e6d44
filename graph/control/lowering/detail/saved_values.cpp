#include "graph/control/lowering/detail/saved_values.hpp"

#include "graph/control/functions/ops.hpp"
#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {
namespace {

template <class T>
const T& attr(const NodeDef& node, const char* name) {
  return *node.attrs.at(name).get<T>();
}

// The index of a call's `saved` output, which comes after results added for state.
std::size_t port_of_run(const FunctionDef& f, NodeId id, std::size_t port) {
  const bool run = id != kNoNode && !f.nodes[id].out_types.empty() &&
                   f.nodes[id].out_types.back() == DType::resource;
  return run ? saved_port(f.nodes[id]) : port;
}

// An error if the node expects another type. Where it says more of the shape than is known, the run
// checks it: of a list's elements, what takes them off.
Status check_type(const NodeDef& node, const FunctionDef& f, NodeId id, std::size_t port,
                  DType wanted) {
  auto bad = [&](const std::string& why) { return in_node(invalid_argument(why), node); };
  if (id == kNoNode || port >= f.nodes[id].out_types.size() ||
      f.nodes[id].out_types[port] != wanted)
    return bad(called(f) + " has no such output of a node that it names");
  const PartialShape& is = f.nodes[id].out_shapes[port];
  if (wanted == DType::resource || PartialShape::merge(node.out_shapes[0], is).ok())
    return ok_status();
  return bad("it says that its shape is " + node.out_shapes[0].text() + ", which in " + called(f) +
             " is " + is.text());
}

}  // namespace

std::uint32_t SavedValues::add_run(std::vector<Inlined> branches) {
  runs_.push_back(std::move(branches));
  return std::uint32_t(runs_.size()) - 1;
}

void SavedValues::set_run(std::uint32_t run, Inlined body) {
  runs_[run].push_back(std::move(body));
}

// --- values that nodes name ---

Expected<Value> SavedValues::find(const NodeDef& node, const Value& handle, std::uint32_t frame) {
  if (node.op == kSavedOp) return find_value(node, handle, frame);
  if (node.op == kSavedListOp) return find_list(node, handle, frame);
  TROUPE_TRY(const std::uint32_t loop, loop_of(node, handle));
  TROUPE_TRY(Value number, loops_.trips(loop));
  return bring(number, loops_.parent(loop), frame);
}

// A value of the function that a gradient function differentiates, from its run.
Expected<Value> SavedValues::find_value(const NodeDef& node, const Value& handle,
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
  const NodeId id = functions_.find_node(f, attr<std::string>(node, "node"));
  if (node.out_types[0] == DType::resource) port = port_of_run(f, id, port);
  TROUPE_TRY(check_type(node, f, id, port, node.out_types[0]));
  Value value = run[branch].values[id][port];
  value.waits = false;
  return bring(value, run[branch].frame, frame);
}

// The inlined body of the loop whose `saved` output `handle` is.
Expected<const Inlined*> SavedValues::body_of(const NodeDef& node, const Value& handle) const {
  if (handle.run == kNoRun || runs_[handle.run].empty() || !runs_[handle.run].back().repeated)
    return in_node(invalid_argument("it takes what a loop saved, not this"), node);
  return &runs_[handle.run].back();
}

// Walks inwards from the outermost loop to the value, then makes lists of lists outwards.
Expected<Value> SavedValues::find_list(const NodeDef& node, const Value& handle,
                                       std::uint32_t frame) {
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
    TROUPE_TRY(const Inlined* body, body_of(node, value));
    if (last && nodes[level].empty() && level > 0 && wanted == DType::i64) {
      TROUPE_TRY(value, loops_.trips(body->frame));
      break;
    }
    const FunctionDef& f = *body->function;
    if (original_function(f.name) != functions[level])
      return bad("the loop that it takes from does not repeat " + quoted(functions[level]));
    const NodeId id = functions_.find_node(f, nodes[level]);
    auto port = std::size_t(ports[level]);
    if (!last) port = port_of_run(f, id, port);
    // The declared shape is that of the innermost elements.
    if (!last && (id == kNoNode || port >= body->values[id].size()))
      return bad(called(f) + " has no such node");
    if (last) TROUPE_TRY(check_type(node, f, id, port, wanted));
    value = body->values[id][port];
    loops.push_back(body->frame);
  }
  if (value.run != kNoRun || loops.empty()) return bad("it names no value of a loop's body");
  for (std::size_t level = loops.size(); level-- > 0;) {
    TROUPE_TRY(value, loops_.keep(loops[level], value));
    if (level > 0 && loops_.parent(loops[level]) != loops[level - 1])
      return bad("it names a loop that is not in the body of the one before");
  }
  value.waits = false;
  return bring(value, loops_.parent(loops[0]), frame);
}

Expected<std::uint32_t> SavedValues::loop_of(const NodeDef& node, const Value& handle) const {
  TROUPE_TRY(const Inlined* body, body_of(node, handle));
  return body->frame;
}

// --- from one frame to another ---

Expected<Value> SavedValues::bring(const Value& value, std::uint32_t from, std::uint32_t to) {
  if (from == to || !out_.is_tensor(value)) return value;
  if (loops_.is_around(from, to)) {
    if (const RecursiveFunction* function = records_.in_frame(to))
      return in_node(
          unimplemented("a value from around it is asked for in " + called(*function->function)),
          loops_.like(to));
    TROUPE_TRY(Value around, bring(value, from, loops_.parent(to)));
    return loops_.enter(to, around);
  }
  if (const Value* before = loops_.before_loop(from, value.port))
    return bring(Value(*before), loops_.parent(from), to);
  for (std::uint32_t through = to; through != 0; through = loops_.parent(through)) {
    const std::vector<std::uint32_t> way = loops_.way_back(from, through);
    if (way.empty()) continue;
    Value at = value;
    for (std::size_t i = way.size() - 1; i > 0; --i) {
      TROUPE_TRY(at, bring_back(at, way[i], way[i - 1]));
    }
    return bring(at, through, to);
  }
  return in_node(invalid_argument("a value of an iteration is asked for outside of its loop"),
                 loops_.like(from));
}

// Brings a value to a frame that reverses `from`.
Expected<Value> SavedValues::bring_back(const Value& value, std::uint32_t from, std::uint32_t to) {
  if (RecursiveFunction* function = records_.in_frame(to)) return records_.recall(*function, value);
  if (const Value* before = loops_.before_loop(from, value.port))
    return bring(Value(*before), loops_.parent(from), to);
  TROUPE_TRY(Value list, loops_.keep(from, value));
  TROUPE_TRY(list, bring(list, loops_.parent(from), loops_.parent(to)));
  return loops_.take(to, list, value, from);
}

}  // namespace troupe::detail
