#include "graph/control/lowering/detail/inline.hpp"

#include <algorithm>

#include "graph/control/lowering/conditional.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/suggest.hpp"

namespace troupe::detail {
namespace {

// Calls in bodies in bodies.
constexpr std::size_t kDeepest = 200;

// Loops around what asks a queue: their numbers go into a key.
constexpr std::size_t kDeepestAsking = 8;

}  // namespace

Inliner::Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out)
    : functions_(functions), recursion_(find_recursion(functions, ops)), ops_(ops), out_(out) {
  for (const FunctionDef& f : functions_) by_name_.emplace(f.name, &f);
  called_.assign(functions_.size(), false);
  frames_.emplace_back();
}

// --- nodes made here ---

NodeId Inliner::append(NodeDef node) {
  node.name = names_.take(node.name);
  return out_.append(std::move(node));
}

void Inliner::anchor(NodeDef& node, const std::vector<Value>& inputs, const Place& place) const {
  const bool dies = std::any_of(inputs.begin(), inputs.end(),
                                [&](const Value& v) { return v.pivot == place.pivot; });
  const bool waits =
      std::any_of(inputs.begin(), inputs.end(), [](const Value& v) { return v.waits; });
  if (place.pivot != kNoNode && !dies) node.control.push_back(place.pivot);
  if (!waits) node.control.insert(node.control.end(), place.control.begin(), place.control.end());
}

NodeId Inliner::pivot_of(const NodeDef& call, const std::vector<Value>& values, Place inside) {
  NodeId last = kNoNode;
  inside.prefix += call.name + "/";
  inside.device = call.device;
  inside.colocate = call.colocate;
  for (const Value& v : values) {
    NodeDef node = identity(call, "pivot", v.port, inside);
    if (last != kNoNode) node.control.push_back(last);
    last = append(std::move(node));
  }
  return last;
}

NodeId Inliner::node_of(const NodeDef& call, const Value& value) {
  Place inside{.prefix = call.name + "/", .device = call.device, .colocate = call.colocate};
  return append(identity(call, "result", value.port, inside));
}

// --- functions ---

Expected<const FunctionDef*> Inliner::enter(const std::string& name, const NodeDef& call,
                                            const Place& place) {
  const auto at = by_name_.find(name);
  if (at == by_name_.end())
    return in_node(invalid_argument("there is no function " + quoted(name)), call);
  const FunctionDef& f = *at->second;
  const bool may_be_open = call.op == "Call" && stays(f, {});
  if (!may_be_open && std::find(open_.begin(), open_.end(), &f) != open_.end())
    return in_node(unimplemented(called(f) + " calls itself" +
                                 (open_.back() == &f ? "" : ", by " + called(*open_.back())) +
                                 "; only a Call of it may do so"),
                   call);
  if (place.depth >= kDeepest)
    return in_node(resource_exhausted(called(f) + " is called in bodies of bodies, more than " +
                                      std::to_string(kDeepest) + " deep"),
                   call);
  return &f;
}

Status Inliner::in_budget(std::size_t more, const std::string& what) {
  work_ += more;
  return work_ <= most_work_ ? ok_status() : too_much(what);
}

Status Inliner::too_much(const std::string& what) const {
  return resource_exhausted("with " + what + " the step has more than " +
                            std::to_string(most_work_) + " nodes and edges of functions");
}

// What a body takes: its nodes and edges, and names that grow with each level.
std::size_t Inliner::work_of(const FunctionDef& f, const Place& place) {
  std::size_t work = 1;
  for (const NodeDef& node : f.nodes)
    work += 1 + node.inputs.size() + node.control.size() +
            (place.prefix.size() + node.name.size()) / 64;
  return work;
}

Expected<Inlined> Inliner::inline_function(const FunctionDef& f,
                                           const std::vector<Value>& arguments,
                                           const Place& place) {
  TROUPE_TRY(in_budget(work_of(f, place), called(f)));
  Inlined in;
  in.function = &f;
  in.frame = place.frame;
  in.values.resize(f.nodes.size());
  in.nodes.resize(f.nodes.size());
  TROUPE_TRY(bind_arguments(in, arguments, place));
  std::vector<bool> followed(f.nodes.size(), false);  // somebody comes after it
  for (const NodeDef& node : f.nodes)
    for (NodeId c : node.control) followed[c] = true;
  open_.push_back(&f);
  for (NodeId id = 0; id < f.nodes.size(); ++id)
    if (Status s = inline_node(in, id, place, followed); !s.ok()) {
      open_.pop_back();
      return s;
    }
  open_.pop_back();
  for (std::size_t k = 0; k < f.results.size(); ++k) {
    const NodeDef& node = f.nodes[f.results[k].node];
    const Value& value = in.values[f.results[k].node][f.results[k].index];
    if (value.run != kNoRun)
      return in_node(invalid_argument("it is no value that a function can return"), node);
    const std::string name = "result_" + std::to_string(k);
    TROUPE_TRY(
        Value result,
        ensured(value, f.result_shapes[k],
                {name, "result " + std::to_string(k) + " of " + called(f) + ", " + called(node),
                 node.site},
                place));
    in.results.push_back(result);
  }
  return in;
}

// --- shapes that only a run knows ---

// The value, which a run has checked where less is known of its shape than is declared.
Expected<Value> Inliner::ensured(const Value& value, const PartialShape& declared, Ensured what,
                                 const Place& place) {
  if (value.run != kNoRun) return value;
  const NodeDef& source = out_.graph().nodes[value.port.node];
  const DType type = source.out_types[value.port.index];
  // What is in a list is checked when it is taken off.
  if (is_handle(role_of(source, ops_)) || type == DType::list) return value;
  const PartialShape& is = source.out_shapes[value.port.index];
  auto both = PartialShape::merge(declared, is);
  if (both.ok() && *both == is) return value;
  TROUPE_TRY(ops_.lookup(kEnsuredOp));
  NodeDef node;
  node.name = place.prefix + what.name;
  node.op = kEnsuredOp;
  node.site = std::move(what.site);
  node.replica = place.replica;
  // Where the value is made.
  if (source.op == kFeedOp) {
    node.device = place.device;
    node.colocate = place.colocate;
    if (!place.loop.empty()) node.colocate.push_back(place.loop);
  } else {
    node.device = source.device;
    if (!place.loop.empty()) node.colocate = {source.name};
  }
  node.attrs = {{"T", type}, {"shape", declared}, {"message", std::move(what.message)}};
  node.inputs = {value.port};
  node.out_types = {type};
  node.out_shapes = {both.ok() ? *both : declared};
  anchor(node, {value}, place);
  return Value{{append(std::move(node)), 0}, place.pivot, true};
}

Expected<Value> Inliner::ensured_argument(const FunctionDef& f, std::size_t i, const Value& value,
                                          const Place& place) {
  const NodeDef& argument = f.nodes[f.arguments[i]];
  const std::string number = std::to_string(i);
  return ensured(value, argument.out_shapes[0],
                 {"argument_" + number, "argument " + number + " of " + called(f), place.site},
                 place);
}

// A handle's attributes decided the types and shapes in the body.
Status Inliner::bind_arguments(Inlined& in, const std::vector<Value>& arguments,
                               const Place& place) {
  const FunctionDef& f = *in.function;
  if (arguments.size() != f.arguments.size())
    return invalid_argument(called(f) + " takes " + std::to_string(f.arguments.size()) +
                            " arguments, not " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const NodeDef& argument = f.nodes[f.arguments[i]];
    TROUPE_TRY(const Value value, ensured_argument(f, i, arguments[i], place));
    const bool handle = argument.op != kArgumentOp;
    if (handle) {
      if (value.run != kNoRun)
        return invalid_argument(called(f) + ": argument '" + argument.name + "' must be a handle");
      const NodeDef& is = out_.graph().nodes[value.port.node];
      AttrMap left = argument.attrs, right = is.attrs;
      for (const char* own : {"shared_name", "container", "trainable"})
        left.erase(own), right.erase(own);
      if (is.op != argument.op || left != right)
        return invalid_argument(called(f) + ": the handle '" + is.name + "' (" + is.site.text() +
                                ") is not of the kind, dtype and shape of argument '" +
                                argument.name + "'");
    }
    in.values[f.arguments[i]] = {value};
    const bool waits_for = !handle && value.run == kNoRun;
    if (waits_for) in.nodes[f.arguments[i]] = {value.port.node};
  }
  return ok_status();
}

std::vector<NodeId> Inliner::control_of(const Inlined& in, const NodeDef& node) const {
  std::vector<NodeId> out;
  for (NodeId c : node.control)
    for (NodeId n : in.nodes[c])
      if (!is_handle(role_of(out_.graph().nodes[n], ops_))) out.push_back(n);
  return out;
}

// Where the list is made that a node takes, which is where it stays whatever loops hand it on.
NodeId Inliner::maker_of_list(const NodeDef& node) const {
  const auto& nodes = out_.graph().nodes;
  for (Port in : node.inputs)
    if (nodes[in.node].out_types[in.index] == DType::list) return maker_of(in).node;
  return kNoNode;
}

// Devices and colocation of the call hold where the body says nothing, but not for what takes a
// handle: that goes where its resource is. A function that calls itself is all in one place.
void Inliner::locate(NodeDef& node, const Inlined& in, const Place& place) {
  const bool with_resource = !region_ && op_of(node, ops_).takes_handles();
  if (!with_resource)
    if (auto device = device_over(place.device, node.device); device.ok()) node.device = *device;
  if (node.replica < 0) node.replica = place.replica;
  for (std::string& other : node.colocate) {
    const NodeId id = find(*in.function, other);
    if (id != kNoNode && !in.nodes[id].empty())
      other = out_.graph().nodes[in.nodes[id].front()].name;
  }
  if (node.colocate.empty() && !with_resource) node.colocate = place.colocate;
}

Status Inliner::inline_node(Inlined& in, NodeId id, const Place& place,
                            const std::vector<bool>& followed) {
  const NodeDef& body = in.function->nodes[id];
  const OpDef& op = op_of(body, ops_).def;
  if (!in.values[id].empty()) return ok_status();  // an argument
  if (op.role == Role::call) return inline_call(in, id, place, followed[id]);
  if (op.role == Role::argument || op.role == Role::placeholder || is_handle(op.role))
    return in_node(invalid_argument("a body cannot have such a node"), body);
  if (place.constants)
    if (auto at = place.constants->index.find(&body); at != place.constants->index.end()) {
      const Value& value = place.constants->in_order[at->second].second;
      in.values[id] = {value};
      in.nodes[id] = {value.port.node};
      return ok_status();
    }
  std::vector<Value> inputs;
  for (Port p : body.inputs) inputs.push_back(in.values[p.node][p.index]);
  if (op.role == Role::saved) {
    TROUPE_TRY(Value value, saved(body, inputs[0], place.frame));
    in.values[id] = {value};
    return ok_status();
  }
  if (op.role == Role::external && region_)
    return in_node(unimplemented(body.op + " in " + called(*in.function) +
                                 ", which is called by itself: queues, datasets and files are "
                                 "asked for outside; pass values"),
                   body);
  if (op.role == Role::external && place.frame != 0) TROUPE_TRY(check_in_loop(body, place));
  if (op.external.resource == "dataset" && place.pivot != kNoNode && body.op != kElementAtOp)
    return in_node(unimplemented("elements of a dataset are taken whether or not a branch is; take "
                                 "them outside of it"),
                   body);
  NodeDef node = body;
  node.name = place.prefix + body.name;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].run != kNoRun)
      return in_node(invalid_argument("input " + std::to_string(i) + " is no value"), body);
    node.inputs[i] = inputs[i].port;
  }
  node.control = control_of(in, body);
  locate(node, in, place);
  const NodeId list = place.frame == 0 ? kNoNode : maker_of_list(node);
  if (list != kNoNode && body.colocate.empty()) node.colocate.clear();
  if (list != kNoNode && body.device.empty() && !out_.graph().nodes[list].device.empty())
    node.device = out_.graph().nodes[list].device;
  if (!place.loop.empty() && body.device.empty() && list == kNoNode && op.role != Role::external)
    node.colocate.push_back(place.loop);
  if (region_) TROUPE_TRY(check_device(node));
  if (node.attrs.contains(kAtVariableAttr)) {
    node.device = out_.graph().nodes[inputs[0].port.node].device;
    node.colocate.clear();
  }
  // A constant may be there in a branch that is not taken: who reads it is not.
  const bool free = body.op == "Const" && body.control.empty() && place.frame == 0;
  if (!free) anchor(node, inputs, place);
  const bool joins = op.role == Role::merge &&
                     !std::all_of(inputs.begin(), inputs.end(),
                                  [&](const Value& v) { return v.pivot == place.pivot; });
  const bool queued = op.role == Role::external && place.frame != 0;
  const NodeId queue = queued ? node.inputs[0].node : kNoNode;
  if (queued) come_after_last(node, queue, place);
  const NodeId made = append(std::move(node));
  for (std::uint32_t k = 0; k < body.out_types.size(); ++k)
    in.values[id].push_back({{made, k}, free || joins ? kNoNode : place.pivot, !free});
  in.nodes[id] = {made};
  if (!queued && !has_effect(op)) return ok_status();
  const bool may_die = dying_in(*in.function)[id];
  const NodeId end = may_die ? over(body.name, {made}, out_.graph().nodes[made], place) : made;
  if (queued) frames_[place.frame].last_asked[{queue, place.pivot}] = {end};
  if (has_effect(op)) in.effects.push_back(end);
  return ok_status();
}

// A loop asks queues, one iteration after the other; its number is a part of the request.
Status Inliner::check_in_loop(const NodeDef& node, const Place& place) const {
  if (node.op == kElementAtOp) return ok_status();
  if (op_of(node, ops_).def.external.resource != "queue")
    return in_node(unimplemented(node.op + " in a loop: what asks for files stands outside of "
                                           "loops"),
                   node);
  std::size_t depth = 0;
  for (std::uint32_t f = place.frame; f != 0; f = frames_[f].parent) ++depth;
  if (depth > kDeepestAsking)
    return in_node(unimplemented(node.op + " in loops in loops, more than " +
                                 std::to_string(kDeepestAsking) + " deep"),
                   node);
  return ok_status();
}

// What a body asks of one queue, on one branch, it asks in the order of its nodes.
void Inliner::come_after_last(NodeDef& node, NodeId queue, const Place& place) const {
  const auto& last = frames_[place.frame].last_asked;
  if (const auto at = last.find({queue, place.pivot}); at != last.end())
    node.control.insert(node.control.end(), at->second.begin(), at->second.end());
}

// Those that its branches or its loop may ask in an iteration, as one in that order. What a
// function asks takes its own places in it, unless its nodes are `apart`, as those of a branch are.
std::vector<NodeId> Inliner::queues_of(const NodeDef& call, const std::vector<Value>& inputs,
                                       bool apart) const {
  std::vector<NodeId> queues;
  if (call.op == "Call" && !apart) return queues;
  for (const Value& value : inputs) {
    if (value.run != kNoRun) continue;
    const OpDef& op = op_of(out_.graph().nodes[value.port.node], ops_).def;
    if (is_handle(op.role) && op.external.resource == "queue") queues.push_back(value.port.node);
  }
  return queues;
}

Status Inliner::inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done) {
  const NodeDef& body = in.function->nodes[id];
  const std::vector<bool>& may_die = dying_in(*in.function);
  std::vector<Value> inputs, dying;
  for (Port p : body.inputs) {
    inputs.push_back(in.values[p.node][p.index]);
    if (may_die[p.node] && inputs.back().run == kNoRun) dying.push_back(inputs.back());
  }
  NodeDef call = body;
  call.control = control_of(in, body);
  locate(call, in, place);
  Place here = place;
  if (!body.device.empty()) here.loop.clear();
  if (!dying.empty()) here.pivot = pivot_of(call, dying, here);
  std::vector<NodeId> queues;
  if (place.frame != 0) queues = queues_of(call, inputs, !dying.empty());
  for (NodeId queue : queues) come_after_last(call, queue, place);
  wants_done |= !queues.empty();
  TROUPE_TRY(Lowered lowered, lower(call, std::move(inputs), std::move(here), wants_done));
  in.values[id] = std::move(lowered.outputs);
  in.nodes[id] = lowered.done;
  const auto alive = [&](std::vector<NodeId> nodes) {
    if (dying.empty() || nodes.empty()) return nodes;
    return std::vector{over(body.name, std::move(nodes), call, place)};
  };
  lowered.effects = alive(std::move(lowered.effects));
  if (!queues.empty()) {  // one that only looks at them has no effect
    const auto ends = lowered.effects.empty() ? alive(std::move(lowered.done)) : lowered.effects;
    for (NodeId queue : queues) frames_[place.frame].last_asked[{queue, place.pivot}] = ends;
  }
  in.effects.insert(in.effects.end(), lowered.effects.begin(), lowered.effects.end());
  return ok_status();
}

// Of effects that a Switch of the client's own may leave dead: that nothing more comes of them.
NodeId Inliner::over(const std::string& name, std::vector<NodeId> effects, const NodeDef& like,
                     const Place& place) {
  NodeDef trigger = made(name + "/over", "ControlTrigger", like, place);
  trigger.device = like.device;
  trigger.colocate = like.colocate;
  trigger.control = std::move(effects);
  return append(std::move(trigger));
}

const std::vector<bool>& Inliner::dying_in(const FunctionDef& f) {
  auto [at, fresh] = dying_.try_emplace(&f);
  if (fresh) at->second = find_dying(f.nodes, ops_);
  return at->second;
}

NodeId Inliner::find(const FunctionDef& f, const std::string& name) {
  auto [at, fresh] = nodes_of_.try_emplace(&f);
  if (fresh)
    for (NodeId id = 0; id < f.nodes.size(); ++id) at->second.emplace(f.nodes[id].name, id);
  auto node = at->second.find(name);
  return node == at->second.end() ? kNoNode : node->second;
}

}  // namespace troupe::detail
