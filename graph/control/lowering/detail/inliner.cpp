#include "graph/control/lowering/detail/inliner.hpp"

#include <algorithm>
#include <iterator>

#include "graph/control/functions/ops.hpp"
#include "graph/control/state/state_ops.hpp"
#include "graph/detail/device_over.hpp"

namespace troupe::detail {
Inliner::Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out)
    : ops_(ops),
      functions_(functions, ops),
      budget_(functions_, ops),
      out_(ops, out),
      shapes_(out_),
      branches_(out_),
      loops_(out_),
      queues_(out_, loops_),
      records_(out_, loops_),
      saved_(functions_, out_, loops_, records_),
      recursive_(functions_, budget_, out_, loops_, records_, saved_, shapes_),
      calls_(functions_, budget_, out_, shapes_, branches_, loops_, saved_, recursive_,
             [this](const FunctionDef& f, const std::vector<Value>& arguments, const Place& place) {
               return inline_function(f, arguments, place);
             }) {}

// --- functions ---

Expected<Inlined> Inliner::inline_function(const FunctionDef& f,
                                           const std::vector<Value>& arguments,
                                           const Place& place) {
  TROUPE_TRY(budget_.spend_on(f, place));
  Inlined in;
  in.function = &f;
  in.frame = place.frame;
  in.values.resize(f.nodes.size());
  in.nodes.resize(f.nodes.size());
  TROUPE_TRY(bind_arguments(in, arguments, place));
  std::vector<bool> followed(f.nodes.size(), false);  // another node comes after it
  for (const NodeDef& node : f.nodes)
    for (NodeId c : node.control) followed[c] = true;
  for (NodeId id = 0; id < f.nodes.size(); ++id)
    TROUPE_TRY(inline_body_node(in, id, place, followed[id]));
  TROUPE_TRY(bind_results(in, place));
  return in;
}

Status Inliner::bind_arguments(Inlined& in, const std::vector<Value>& arguments,
                               const Place& place) {
  const FunctionDef& f = *in.function;
  if (arguments.size() != f.arguments.size())
    return invalid_argument(called(f) + " takes " + std::to_string(f.arguments.size()) +
                            " arguments, not " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const NodeDef& argument = f.nodes[f.arguments[i]];
    TROUPE_TRY(const Value value, shapes_.argument(f, i, arguments[i], place));
    const bool handle = argument.op != kArgumentOp;
    if (handle) TROUPE_TRY(check_handle(f, argument, value));
    in.values[f.arguments[i]] = {value};
    const bool waits_for = !handle && value.run == kNoRun;
    if (waits_for) in.nodes[f.arguments[i]] = {value.port.node};
  }
  return ok_status();
}

// Types and shapes in the body follow from the argument's attributes, so the handle must have them.
Status Inliner::check_handle(const FunctionDef& f, const NodeDef& argument,
                             const Value& value) const {
  if (value.run != kNoRun)
    return invalid_argument(called(f) + ": argument '" + argument.name + "' must be a handle");
  const NodeDef& is = out_.node(value.port.node);
  AttrMap left = argument.attrs, right = is.attrs;
  for (const char* own : {"shared_name", "container", "trainable"})
    left.erase(own), right.erase(own);
  if (is.op == argument.op && left == right) return ok_status();
  return invalid_argument(called(f) + ": the handle '" + is.name + "' (" + is.site.text() +
                          ") is not of the kind, dtype and shape of argument '" + argument.name +
                          "'");
}

Status Inliner::bind_results(Inlined& in, const Place& place) {
  const FunctionDef& f = *in.function;
  for (std::size_t k = 0; k < f.results.size(); ++k) {
    const Value& value = in.values[f.results[k].node][f.results[k].index];
    if (value.run != kNoRun)
      return in_node(invalid_argument("a function cannot return it: it is no tensor"),
                     f.nodes[f.results[k].node]);
    TROUPE_TRY(Value result, shapes_.result(f, k, value, place));
    in.results.push_back(result);
  }
  return ok_status();
}

// --- nodes of a body ---

// `followed`: another node of the body comes after it.
Status Inliner::inline_body_node(Inlined& in, NodeId id, const Place& place, bool followed) {
  const NodeDef& body = in.function->nodes[id];
  const Role role = role_of(body, ops_);
  if (!in.values[id].empty()) return ok_status();  // an argument
  if (role == Role::call) return inline_call(in, id, place, followed);
  if (role == Role::argument || role == Role::placeholder || is_handle(role))
    return in_node(invalid_argument("a body cannot have such a node"), body);
  if (take_constant(in, id, place)) return ok_status();
  if (role != Role::saved) return inline_node(in, id, place);
  const Port handle = body.inputs[0];
  TROUPE_TRY(Value value, saved_.find(body, in.values[handle.node][handle.index], place.frame));
  TROUPE_TRY(value, shapes_.saved(body, value, place));
  in.values[id] = {value};
  return ok_status();
}

// Uses a constant that the loop made before it, if there is one.
bool Inliner::take_constant(Inlined& in, NodeId id, const Place& place) const {
  if (!place.constants) return false;
  const auto at = place.constants->index.find(&in.function->nodes[id]);
  if (at == place.constants->index.end()) return false;
  const Value& value = place.constants->in_order[at->second].second;
  in.values[id] = {value};
  in.nodes[id] = {value.port.node};
  return true;
}

Status Inliner::inline_node(Inlined& in, NodeId id, const Place& place) {
  const NodeDef& body = in.function->nodes[id];
  const OpDef& op = op_of(body, ops_).def;
  TROUPE_TRY(check_node(body, *in.function, place));
  NodeDef node = body;
  node.name = place.prefix + body.name;
  std::vector<Value> inputs;
  for (std::size_t i = 0; i < body.inputs.size(); ++i) {
    inputs.push_back(in.values[body.inputs[i].node][body.inputs[i].index]);
    if (inputs[i].run != kNoRun)
      return in_node(invalid_argument("input " + std::to_string(i) + " is no tensor"), body);
    node.inputs[i] = inputs[i].port;
  }
  node.control = control_of(in, body);
  TROUPE_TRY(locate_node(node, body, in, place));
  // A constant may run in a branch that is not taken: its readers do not.
  const bool free = body.op == "Const" && body.control.empty() && place.frame == 0;
  if (!free) out_.anchor(node, inputs, place);
  const bool joins = op.role == Role::merge &&
                     !std::all_of(inputs.begin(), inputs.end(),
                                  [&](const Value& v) { return v.pivot == place.pivot; });
  const bool queued = op.role == Role::external && place.frame != 0;
  const NodeId queue = queued ? node.inputs[0].node : kNoNode;
  if (queued) queues_.come_after_last(node, queue, place);
  const NodeId made = out_.append(std::move(node));
  for (std::uint32_t k = 0; k < body.out_types.size(); ++k)
    in.values[id].push_back({{made, k}, free || joins ? kNoNode : place.pivot, !free});
  in.nodes[id] = {made};
  if (!queued && !has_effect(op)) return ok_status();
  const bool may_die = functions_.may_die(*in.function)[id];
  const NodeId end = may_die ? out_.append_over(body.name, {made}, out_.node(made), place) : made;
  if (queued) queues_.asked(queue, place, {end});
  if (has_effect(op)) in.effects.push_back(end);
  return ok_status();
}

// An error if the node is not supported at that place.
Status Inliner::check_node(const NodeDef& node, const FunctionDef& f, const Place& place) const {
  const OpDef& op = op_of(node, ops_).def;
  if (op.role == Role::external && recursive_.is_inside())
    return in_node(unimplemented(node.op + " in " + called(f) +
                                 ", which is called by itself: queues, datasets and files are "
                                 "asked for outside; pass values"),
                   node);
  if (op.role == Role::external && place.frame != 0) TROUPE_TRY(queues_.check(node, place));
  if (op.external.resource == "dataset" && place.pivot != kNoNode && node.op != kElementAtOp)
    return in_node(unimplemented("elements of a dataset are taken whether or not a branch is; take "
                                 "them outside of it"),
                   node);
  return ok_status();
}

std::vector<NodeId> Inliner::control_of(const Inlined& in, const NodeDef& node) const {
  std::vector<NodeId> out;
  for (NodeId c : node.control)
    for (NodeId n : in.nodes[c])
      if (!out_.is_handle(n)) out.push_back(n);
  return out;
}

// A node gets the device and colocation of the call where it names none. A node that takes a handle
// is placed with its resource instead, except in a recursive function, which is on one device.
void Inliner::locate(NodeDef& node, const Inlined& in, const Place& place) {
  const bool with_resource = !recursive_.is_inside() && op_of(node, ops_).takes_handles();
  if (!with_resource)
    if (auto device = device_over(place.device, node.device); device.ok()) node.device = *device;
  if (node.replica < 0) node.replica = place.replica;
  for (std::string& other : node.colocate) {
    const NodeId id = functions_.find_node(*in.function, other);
    if (id != kNoNode && !in.nodes[id].empty()) other = out_.node(in.nodes[id].front()).name;
  }
  if (node.colocate.empty() && !with_resource) node.colocate = place.colocate;
}

// Like locate(); but in a loop, a node that takes a list is placed with the node that made it, and
// any other with the loop's first node unless `body`, the original node, names a device.
Status Inliner::locate_node(NodeDef& node, const NodeDef& body, const Inlined& in,
                            const Place& place) {
  locate(node, in, place);
  const NodeId list = place.frame == 0 ? kNoNode : maker_of_list(node);
  if (list != kNoNode && body.colocate.empty()) node.colocate.clear();
  if (list != kNoNode && body.device.empty() && !out_.node(list).device.empty())
    node.device = out_.node(list).device;
  if (!place.loop.empty() && body.device.empty() && list == kNoNode &&
      role_of(body, ops_) != Role::external)
    node.colocate.push_back(place.loop);
  if (recursive_.is_inside()) TROUPE_TRY(recursive_.check_device(node));
  if (node.attrs.contains(kAtVariableAttr)) {
    node.device = out_.node(node.inputs[0].node).device;
    node.colocate.clear();
  }
  return ok_status();
}

NodeId Inliner::maker_of_list(const NodeDef& node) const {
  for (Port in : node.inputs)
    if (out_.dtype(in) == DType::list) return out_.origin(in).node;
  return kNoNode;
}

// --- calls in a body ---

Status Inliner::inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done) {
  const NodeDef& body = in.function->nodes[id];
  const std::vector<bool>& may_die = functions_.may_die(*in.function);
  std::vector<Value> inputs, dying;
  for (Port p : body.inputs) {
    inputs.push_back(in.values[p.node][p.index]);
    if (may_die[p.node] && inputs.back().run == kNoRun) dying.push_back(inputs.back());
  }
  std::vector<NodeId> behind;
  for (NodeId c : body.control)
    if (may_die[c])
      std::copy_if(in.nodes[c].begin(), in.nodes[c].end(), std::back_inserter(behind),
                   [&](NodeId n) { return !out_.is_handle(n); });
  const bool dies = !dying.empty() || !behind.empty();
  NodeDef call = body;
  call.control = control_of(in, body);
  locate(call, in, place);
  Place here = place;
  if (!body.device.empty()) here.loop.clear();
  if (dies) here.pivot = out_.append_pivot(call, dying, behind, here);
  std::vector<NodeId> queues;
  if (place.frame != 0) queues = queues_.queues_of(call, inputs, dies);
  for (NodeId queue : queues) queues_.come_after_last(call, queue, place);
  wants_done |= !queues.empty();
  TROUPE_TRY(Lowered lowered, calls_.lower(call, inputs, std::move(here), wants_done));
  in.values[id] = std::move(lowered.outputs);
  in.nodes[id] = lowered.done;
  const auto alive = [&](std::vector<NodeId> nodes) {
    if (!dies || nodes.empty()) return nodes;
    return std::vector{out_.append_over(body.name, std::move(nodes), call, place)};
  };
  lowered.effects = alive(std::move(lowered.effects));
  if (!queues.empty()) {  // a call that only inspects them has no effect
    const auto ends = lowered.effects.empty() ? alive(std::move(lowered.done)) : lowered.effects;
    for (NodeId queue : queues) queues_.asked(queue, place, ends);
  }
  in.effects.insert(in.effects.end(), lowered.effects.begin(), lowered.effects.end());
  return ok_status();
}

}  // namespace troupe::detail
