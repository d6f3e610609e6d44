#include "graph/control/lowering/detail/inliner.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"
#include "graph/control/lowering/detail/loop_nodes.hpp"
#include "graph/control/state/state.hpp"
#include "graph/detail/device_over.hpp"

namespace troupe::detail {
namespace {

// Calls in bodies in bodies.
constexpr std::size_t kDeepest = 200;

}  // namespace

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
      recursive_(functions_, budget_, out_, loops_, records_, saved_, shapes_) {}

// --- calls ---

Expected<Lowered> Inliner::lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                                 bool wants_done) {
  Place inside = place;
  inside.prefix = place.prefix + call.name + "/";
  inside.device = call.device;
  inside.colocate = call.colocate;
  inside.replica = call.replica;
  inside.site = call.site;
  inside.depth = place.depth + 1;
  std::vector<Value> values = inputs;
  if (!call.control.empty()) {
    for (Value& v : values) v.waits = false;
    for (Place* p : {&place, &inside})
      p->control.insert(p->control.end(), call.control.begin(), call.control.end());
  }
  for (std::size_t i = 0; i < selectors(call); ++i)
    if (values[i].run != kNoRun)
      return in_node(invalid_argument("its predicate or index must be a tensor, not a handle"),
                     call);
  if (call.op == "While") return lower_loop(call, values, place, inside);
  return call.op == "Call" ? lower_call(call, values, inside, wants_done)
                           : lower_branches(call, values, place, inside, wants_done);
}

Expected<const FunctionDef*> Inliner::enter(const std::string& name, const NodeDef& call,
                                            const Place& place) {
  const FunctionDef* found = functions_.find(name);
  if (!found) return in_node(invalid_argument("there is no function " + quoted(name)), call);
  const FunctionDef& f = *found;
  const bool may_be_open = call.op == "Call" && recursive_.stays(f, {});
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

Expected<Lowered> Inliner::lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& inside, bool wants_done) {
  TROUPE_TRY(const FunctionDef* f, enter(functions_of(call)[0], call, inside));
  if (recursive_.stays(*f, inputs)) return lower_recursive(call, *f, inputs, inside);
  auto inlined = inline_function(*f, inputs, inside);
  if (!inlined.ok()) return inlined.status().in("in the call '" + call.name + "' of " + called(*f));
  Lowered out;
  out.outputs = inlined->results;
  out.effects = inlined->effects;
  if (wants_done) {
    NodeDef done = out_.make("done", "ControlTrigger", call, inside);
    done.control = inlined->effects;
    for (const Value& v : inlined->results) done.control.push_back(v.port.node);
    if (inside.pivot != kNoNode) done.control.push_back(inside.pivot);
    done.control.insert(done.control.end(), inside.control.begin(), inside.control.end());
    out.done = {out_.append(std::move(done))};
  }
  std::vector<Inlined> run;
  run.push_back(std::move(inlined).value());
  out.outputs.push_back({.run = saved_.add_run(std::move(run))});
  return out;
}

// What is open around the call does not matter to functions that stay.
Expected<Lowered> Inliner::lower_recursive(const NodeDef& call, const FunctionDef& f,
                                           const std::vector<Value>& inputs, const Place& inside) {
  std::vector<const FunctionDef*> around;
  const bool from_outside = !recursive_.is_inside();
  if (from_outside) open_.swap(around);
  auto lowered =
      recursive_.lower(call, f, inputs, inside,
                       [this](const FunctionDef& g, const std::vector<Value>& arguments,
                              const Place& place) { return inline_function(g, arguments, place); });
  if (from_outside) open_.swap(around);
  return lowered;
}

Expected<Lowered> Inliner::lower_branches(const NodeDef& call, const std::vector<Value>& inputs,
                                          const Place& place, const Place& inside,
                                          bool wants_done) {
  const std::vector<std::string> names = functions_of(call);
  TROUPE_TRY(budget_.spend(names.size() * (call.inputs.size() + call.out_types.size()), call.name));
  const Pivots pivots = branches_.pivots(call, inputs[0], names.size(), place, inside);
  std::vector<std::vector<Value>> arguments(names.size());  // by branch
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto values = branches_.switched(call, inputs[i], inputs[0], pivots, place, inside);
    for (std::size_t b = 0; b < names.size(); ++b) arguments[b].push_back(values[b]);
  }
  std::vector<Inlined> branches;
  for (std::size_t b = 0; b < names.size(); ++b) {
    TROUPE_TRY(const FunctionDef* f, enter(names[b], call, inside));
    Place branch = inside;
    branch.prefix += call.op == "Case" ? "branch_" + std::to_string(b) + "/"
                     : b == 0          ? "else/"
                                       : "then/";
    branch.pivot = pivots[b];
    branch.control.clear();
    auto inlined = inline_function(*f, arguments[b], branch);
    if (!inlined.ok()) return inlined.status().in("in a branch of '" + call.name + "'");
    branches.push_back(std::move(inlined).value());
  }
  Lowered out;
  branches_.merge_results(call, branches, pivots, inside, out);
  const bool effects = std::any_of(branches.begin(), branches.end(),
                                   [](const Inlined& in) { return !in.effects.empty(); });
  if (effects || wants_done) out.done = {branches_.merge_done(call, branches, pivots, inside)};
  if (effects) out.effects = out.done;
  out.outputs.push_back({.run = saved_.add_run(std::move(branches))});
  return out;
}

// The predicate of the first iteration is computed before the loop, that of the next one by each.
Expected<Lowered> Inliner::lower_loop(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& place, const Place& inside) {
  const std::vector<std::string> names = functions_of(call);
  const std::size_t variables = loop_variables(call);
  const auto in_call = [&](const Status& s) { return s.in("in the loop '" + call.name + "'"); };
  TROUPE_TRY(const FunctionDef* cond, enter(names[0], call, inside));
  TROUPE_TRY(const FunctionDef* body, enter(names[1], call, inside));
  Place before = inside;
  before.prefix += "first/";
  std::vector<Value> arguments = inputs;
  TROUPE_TRY(shapes_.first_variables(call, *body, arguments, before));
  auto first = inline_function(*cond, arguments, before);
  if (!first.ok()) return in_call(first.status());

  LoopNodes nodes(call, *body, place, inside, out_, branches_);
  nodes.read_first_values(first->results[0], arguments);
  nodes.make_constants(*cond, before);
  nodes.make_constants(*body, before);
  TROUPE_TRY(const std::uint32_t reverses, reversed_by(call, inputs));
  Place frame = inside;
  TROUPE_TRY(frame.pivot, nodes.begin(first->results[0], arguments));
  frame.loop = out_.node(frame.pivot).name;
  frame.control.clear();
  Place saved_around = inside, saved_inside = frame;
  saved_around.prefix += "saved/";
  saved_inside.prefix += "saved/";
  frame.frame = loops_.begin({.like = call,
                              .parent = place.frame,
                              .reverses = reverses,
                              .variables = std::uint32_t(variables),
                              .around = saved_around,
                              .inside = saved_inside,
                              .begin = frame.pivot,
                              .passed = nodes.passed()});
  frame.constants = &nodes.constants();
  frame.prefix = inside.prefix + "body/";
  auto iteration = inline_function(*body, arguments, frame);
  if (!iteration.ok()) return in_call(iteration.status());
  TROUPE_TRY(shapes_.next_variables(call, *iteration, frame));
  std::copy(iteration->results.begin(), iteration->results.end(), arguments.begin());
  frame.prefix = inside.prefix + "cond/";
  auto again = inline_function(*cond, arguments, frame);
  if (!again.ok()) return in_call(again.status());
  const NodeId end = nodes.end(*iteration, *again, frame);
  loops_.end(frame.frame, end);

  Lowered out;
  for (std::uint32_t v = 0; v < variables; ++v)
    out.outputs.push_back({{end, v}, inside.pivot, true});
  out.effects = first->effects;
  if (!iteration->effects.empty() || !again->effects.empty() || variables == 0)
    out.effects.push_back(end);
  out.done = {end};
  iteration->repeated = true;
  std::vector<Inlined> run;
  run.push_back(std::move(again).value());
  run.push_back(std::move(iteration).value());
  out.outputs.push_back({.run = saved_.add_run(std::move(run))});
  return out;
}

// The loop whose iterations this one goes back over; 0: none.
Expected<std::uint32_t> Inliner::reversed_by(const NodeDef& call,
                                             const std::vector<Value>& inputs) const {
  const auto argument = std::size_t(*call.attrs.at("reverses").get<std::int64_t>());
  if (argument == ~std::size_t{0}) return std::uint32_t{0};
  if (argument >= inputs.size())
    return in_node(invalid_argument("it goes back over what is none of its arguments"), call);
  return saved_.loop_of(call, inputs[argument]);
}

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
  open_.push_back(&f);
  Status status;
  for (NodeId id = 0; id < f.nodes.size() && status.ok(); ++id)
    status = inline_body_node(in, id, place, followed[id]);
  open_.pop_back();
  if (!status.ok()) return status;
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

// A handle's attributes decided the types and shapes in the body.
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
  in.values[id] = {value};
  return ok_status();
}

// What a loop has made before it.
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
  // A constant may be there in a branch that is not taken: who reads it is not.
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

// What cannot stand where it would go.
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

// Devices and colocation of the call hold where the body says nothing, but not for what takes a
// handle: that goes where its resource is. A function that calls itself is all in one place.
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

// The same, in a loop beside its first node unless `body`, the node as its function has it, says
// otherwise. What takes a list goes where that is, whatever loops hand it on.
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
  NodeDef call = body;
  call.control = control_of(in, body);
  locate(call, in, place);
  Place here = place;
  if (!body.device.empty()) here.loop.clear();
  if (!dying.empty()) here.pivot = out_.append_pivot(call, dying, here);
  std::vector<NodeId> queues;
  if (place.frame != 0) queues = queues_.queues_of(call, inputs, !dying.empty());
  for (NodeId queue : queues) queues_.come_after_last(call, queue, place);
  wants_done |= !queues.empty();
  TROUPE_TRY(Lowered lowered, lower(call, inputs, std::move(here), wants_done));
  in.values[id] = std::move(lowered.outputs);
  in.nodes[id] = lowered.done;
  const auto alive = [&](std::vector<NodeId> nodes) {
    if (dying.empty() || nodes.empty()) return nodes;
    return std::vector{out_.append_over(body.name, std::move(nodes), call, place)};
  };
  lowered.effects = alive(std::move(lowered.effects));
  if (!queues.empty()) {  // one that only looks at them has no effect
    const auto ends = lowered.effects.empty() ? alive(std::move(lowered.done)) : lowered.effects;
    for (NodeId queue : queues) queues_.asked(queue, place, ends);
  }
  in.effects.insert(in.effects.end(), lowered.effects.begin(), lowered.effects.end());
  return ok_status();
}

}  // namespace troupe::detail
