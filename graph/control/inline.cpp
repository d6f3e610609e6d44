#include "troupe/graph/control/inline.hpp"

#include <algorithm>

#include "troupe/graph/control/conditional.hpp"
#include "troupe/graph/detail/device_over.hpp"
#include "troupe/graph/detail/suggest.hpp"

namespace troupe::detail {
namespace {

// Nodes, edges and every 64 bytes of names that inlining may make: functions that call each other
// twice a level would fill any memory.
constexpr std::size_t kMostWork = std::size_t{1} << 22;
// Calls in bodies in bodies.
constexpr std::size_t kDeepest = 200;

std::string called(const FunctionDef& f) {
  return "function " + quoted(f.name) + " (" + f.site.text() + ")";
}

// What its function is run for, beside its results.
bool has_effect(const OpDef& op) {
  if (op.role == Role::kernel) return op.stateful && !op.random;
  const External& e = op.external;
  return op.role == Role::external &&
         (e.order == External::Order::write || e.commits || e.changes || e.fills);
}

}  // namespace

Inliner::Inliner(const std::vector<FunctionDef>& functions, const OpRegistry& ops, Rewriter& out)
    : functions_(functions), ops_(ops), out_(out) {
  for (const FunctionDef& f : functions_) by_name_.emplace(f.name, &f);
}

// --- nodes made here ---

NodeId Inliner::append(NodeDef node) {
  if (!names_.insert(node.name).second) {
    std::string name;
    for (int n = 1; name.empty() || !names_.insert(name).second; ++n)
      name = node.name + "_" + std::to_string(n);
    node.name = std::move(name);
  }
  return out_.append(std::move(node));
}

NodeDef Inliner::made(std::string_view name, std::string_view op, const NodeDef& call,
                      const Place& inside) const {
  NodeDef node;
  node.name = inside.prefix + std::string(name);
  node.op = op;
  node.device = inside.device;
  node.colocate = inside.colocate;
  node.replica = inside.replica;
  node.site = call.site;
  return node;
}

NodeDef Inliner::identity(const NodeDef& call, std::string_view name, Port of,
                          const Place& inside) const {
  const NodeDef& source = out_.graph().nodes[of.node];
  NodeDef node = made(name, "Identity", call, inside);
  node.inputs = {of};
  node.out_types = {source.out_types[of.index]};
  node.out_shapes = {source.out_shapes[of.index]};
  node.attrs.emplace("T", Attr(node.out_types[0]));
  return node;
}

// Where the value is made, so that what a branch does not take goes nowhere.
NodeDef Inliner::switch_node(const NodeDef& call, std::string_view name, const Value& x,
                             const Value& selector, std::size_t branches,
                             const Place& inside) const {
  const NodeDef& source = out_.graph().nodes[x.port.node];
  const DType type = source.out_types[x.port.index];
  NodeDef node = made(name, call.op == "If" ? "Switch" : "SwitchN", call, inside);
  if (source.op != kFeedOp) node.device = source.device;
  node.inputs = {x.port, selector.port};
  node.out_types.assign(branches, type);
  node.out_shapes.assign(branches, source.out_shapes[x.port.index]);
  node.attrs.emplace("T", Attr(type));
  if (call.op == "If") return node;
  const Port index = selector.port;
  node.attrs.emplace("N", Attr(std::int64_t(branches)));
  node.attrs.emplace("Tidx", Attr(out_.graph().nodes[index.node].out_types[index.index]));
  return node;
}

NodeDef Inliner::merge_node(const NodeDef& call, std::string_view name, std::vector<Port> inputs,
                            DType dtype, PartialShape shape, const Place& inside) const {
  NodeDef node = made(name, "Merge", call, inside);
  node.attrs.emplace("T", Attr(dtype));
  node.attrs.emplace("N", Attr(std::int64_t(inputs.size())));
  if (inside.pivot != kNoNode) node.attrs.emplace(kConditionalAttr, Attr(true));
  node.inputs = std::move(inputs);
  node.out_types = {dtype, DType::i32};
  node.out_shapes = {std::move(shape), PartialShape::scalar()};
  return node;
}

void Inliner::anchor(NodeDef& node, const std::vector<Value>& inputs, const Place& place) const {
  const bool dies = std::any_of(inputs.begin(), inputs.end(),
                                [&](const Value& v) { return v.pivot == place.pivot; });
  const bool waits =
      std::any_of(inputs.begin(), inputs.end(), [](const Value& v) { return v.waits; });
  if (place.pivot != kNoNode && !dies) node.control.push_back(place.pivot);
  if (!waits) node.control.insert(node.control.end(), place.control.begin(), place.control.end());
}

NodeId Inliner::pivot_of(const std::string& name, const std::vector<Value>& values,
                         const NodeDef& like) {
  NodeId last = kNoNode;
  Place inside{.prefix = name + "/", .device = like.device, .colocate = like.colocate};
  for (const Value& v : values) {
    NodeDef node = identity(like, "pivot", v.port, inside);
    if (last != kNoNode) node.control.push_back(last);
    last = append(std::move(node));
  }
  return last;
}

// --- functions ---

Expected<const FunctionDef*> Inliner::enter(const std::string& name, const NodeDef& call,
                                            const Place& place) {
  const auto at = by_name_.find(name);
  if (at == by_name_.end())
    return in_node(invalid_argument("there is no function " + quoted(name)), call);
  const FunctionDef& f = *at->second;
  if (std::find(open_.begin(), open_.end(), &f) != open_.end())
    return in_node(unimplemented(called(f) + " calls itself" +
                                 (open_.back() == &f ? "" : ", by " + called(*open_.back())) +
                                 "; recursion is not compiled into plans"),
                   call);
  if (place.depth >= kDeepest)
    return in_node(resource_exhausted(called(f) + " is called in bodies of bodies, more than " +
                                      std::to_string(kDeepest) + " deep"),
                   call);
  return &f;
}

Status Inliner::in_budget(std::size_t more, const std::string& what) {
  work_ += more;
  if (work_ <= kMostWork) return ok_status();
  return resource_exhausted("with " + what + " the step has more than " +
                            std::to_string(kMostWork) + " nodes and edges of functions");
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
  in.values.resize(f.nodes.size());
  in.nodes.resize(f.nodes.size());
  TROUPE_TRY(bind_arguments(in, arguments));
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
  for (Port result : f.results) {
    const Value& value = in.values[result.node][result.index];
    if (value.run != kNoRun)
      return in_node(invalid_argument("it is no value that a function can return"),
                     f.nodes[result.node]);
    in.results.push_back(value);
  }
  return in;
}

// A handle's attributes decided the types and shapes in the body.
Status Inliner::bind_arguments(Inlined& in, const std::vector<Value>& arguments) {
  const FunctionDef& f = *in.function;
  if (arguments.size() != f.arguments.size())
    return invalid_argument(called(f) + " takes " + std::to_string(f.arguments.size()) +
                            " arguments, not " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const NodeDef& argument = f.nodes[f.arguments[i]];
    const Value& value = arguments[i];
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

// Devices and colocation of the call hold where the body says nothing.
void Inliner::locate(NodeDef& node, const Inlined& in, const Place& place) {
  if (auto device = device_over(place.device, node.device); device.ok()) node.device = *device;
  if (node.replica < 0) node.replica = place.replica;
  for (std::string& other : node.colocate) {
    const NodeId id = find(*in.function, other);
    if (id != kNoNode && !in.nodes[id].empty())
      other = out_.graph().nodes[in.nodes[id].front()].name;
  }
  if (node.colocate.empty()) node.colocate = place.colocate;
}

Status Inliner::inline_node(Inlined& in, NodeId id, const Place& place,
                            const std::vector<bool>& followed) {
  const NodeDef& body = in.function->nodes[id];
  const OpDef& op = op_of(body, ops_).def;
  if (!in.values[id].empty()) return ok_status();  // an argument
  if (op.role == Role::call) return inline_call(in, id, place, followed[id]);
  if (op.role == Role::argument || op.role == Role::placeholder || is_handle(op.role))
    return in_node(invalid_argument("a body cannot have such a node"), body);
  std::vector<Value> inputs;
  for (Port p : body.inputs) inputs.push_back(in.values[p.node][p.index]);
  if (op.role == Role::saved) {
    TROUPE_TRY(Value value, saved_value(body, inputs[0]));
    in.values[id] = {value};
    return ok_status();
  }
  if (op.external.resource == "dataset" && place.pivot != kNoNode)
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
  // A constant may be there in a branch that is not taken: who reads it is not.
  const bool free = body.op == "Const" && body.control.empty();
  if (!free) anchor(node, inputs, place);
  const bool joins = op.role == Role::merge &&
                     !std::all_of(inputs.begin(), inputs.end(),
                                  [&](const Value& v) { return v.pivot == place.pivot; });
  const NodeId made = append(std::move(node));
  for (std::uint32_t k = 0; k < body.out_types.size(); ++k)
    in.values[id].push_back({{made, k}, free || joins ? kNoNode : place.pivot, !free});
  in.nodes[id] = {made};
  if (has_effect(op)) in.effects.push_back(made);
  return ok_status();
}

Status Inliner::inline_call(Inlined& in, NodeId id, const Place& place, bool wants_done) {
  const NodeDef& body = in.function->nodes[id];
  std::vector<Value> inputs;
  for (Port p : body.inputs) inputs.push_back(in.values[p.node][p.index]);
  NodeDef call = body;
  call.control = control_of(in, body);
  locate(call, in, place);
  TROUPE_TRY(Lowered lowered, lower(call, std::move(inputs), place, wants_done));
  in.values[id] = std::move(lowered.outputs);
  in.nodes[id] = std::move(lowered.done);
  in.effects.insert(in.effects.end(), lowered.effects.begin(), lowered.effects.end());
  return ok_status();
}

// A value of the function that the gradient function belongs to, as its run left it.
Expected<Value> Inliner::saved_value(const NodeDef& node, const Value& handle) {
  auto bad = [&](const std::string& why) { return in_node(invalid_argument(why), node); };
  if (handle.run == kNoRun) return bad("it takes what a call saved, not a handle");
  const auto branch = std::size_t(*node.attrs.at("branch").get<std::int64_t>());
  const auto& function = *node.attrs.at("function").get<std::string>();
  const auto& name = *node.attrs.at("node").get<std::string>();
  const auto port = std::size_t(*node.attrs.at("port").get<std::int64_t>());
  const std::vector<Inlined>& run = runs_[handle.run];
  if (branch >= run.size() || run[branch].function->name != function)
    return bad("the call that it takes from does not run " + quoted(function));
  const FunctionDef& f = *run[branch].function;
  const NodeId id = find(f, name);
  if (id == kNoNode || port >= f.nodes[id].out_types.size() ||
      f.nodes[id].out_types[port] != node.out_types[0])
    return bad(called(f) + " has no such output of a node " + quoted(name));
  auto shape = PartialShape::merge(node.out_shapes[0], f.nodes[id].out_shapes[port]);
  if (!shape.ok() || *shape != f.nodes[id].out_shapes[port])
    return bad("it says more of the shape than " + called(f) + " does");
  Value value = run[branch].values[id][port];
  value.waits = false;
  return value;
}

NodeId Inliner::find(const FunctionDef& f, const std::string& name) {
  auto [at, fresh] = nodes_of_.try_emplace(&f);
  if (fresh)
    for (NodeId id = 0; id < f.nodes.size(); ++id) at->second.emplace(f.nodes[id].name, id);
  auto node = at->second.find(name);
  return node == at->second.end() ? kNoNode : node->second;
}

// --- calls ---

Expected<Lowered> Inliner::lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                                 bool wants_done) {
  Place inside = place;
  inside.prefix = place.prefix + call.name + "/";
  inside.device = call.device;
  inside.colocate = call.colocate;
  inside.replica = call.replica;
  inside.depth = place.depth + 1;
  std::vector<Value> values = inputs;
  if (!call.control.empty()) {
    for (Value& v : values) v.waits = false;
    for (Place* p : {&place, &inside})
      p->control.insert(p->control.end(), call.control.begin(), call.control.end());
  }
  for (std::size_t i = 0; i < selectors(call); ++i)
    if (values[i].run != kNoRun)
      return in_node(invalid_argument("its predicate or index is no value"), call);
  return call.op == "Call" ? lower_call(call, values, inside, wants_done)
                           : lower_branches(call, values, place, inside, wants_done);
}

Expected<Lowered> Inliner::lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& inside, bool wants_done) {
  TROUPE_TRY(const FunctionDef* f, enter(functions_of(call)[0], call, inside));
  auto inlined = inline_function(*f, inputs, inside);
  if (!inlined.ok()) return inlined.status().in("in the call '" + call.name + "' of " + called(*f));
  Lowered out;
  out.outputs = inlined->results;
  out.effects = inlined->effects;
  if (wants_done) {
    NodeDef done = made("done", "ControlTrigger", call, inside);
    done.control = inlined->effects;
    for (const Value& v : inlined->results) done.control.push_back(v.port.node);
    if (inside.pivot != kNoNode) done.control.push_back(inside.pivot);
    done.control.insert(done.control.end(), inside.control.begin(), inside.control.end());
    out.done = {append(std::move(done))};
  }
  out.outputs.push_back({.run = std::uint32_t(runs_.size())});
  runs_.emplace_back().push_back(std::move(inlined).value());
  return out;
}

Expected<Lowered> Inliner::lower_branches(const NodeDef& call, const std::vector<Value>& inputs,
                                          const Place& place, const Place& inside,
                                          bool wants_done) {
  const std::vector<std::string> names = functions_of(call);
  TROUPE_TRY(in_budget(names.size() * (call.inputs.size() + call.out_types.size()), call.name));
  const Pivots pivots = this->pivots(call, inputs[0], names.size(), place, inside);
  std::vector<std::vector<Value>> arguments(names.size());  // by branch
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto values = switched(call, inputs[i], inputs[0], pivots, place, inside);
    for (std::size_t b = 0; b < names.size(); ++b) arguments[b].push_back(values[b]);
  }
  std::vector<Inlined> branches;
  for (std::size_t b = 0; b < names.size(); ++b) {
    TROUPE_TRY(const FunctionDef* f, enter(names[b], call, inside));
    Place branch = inside;
    branch.prefix += call.op == "Case" ? "branch_" + std::to_string(b) + "/"
                     : b == 0          ? "else/"
                                       : "then/";
    branch.pivot = pivots.of_branch[b];
    branch.control.clear();
    auto inlined = inline_function(*f, arguments[b], branch);
    if (!inlined.ok()) return inlined.status().in("in a branch of '" + call.name + "'");
    branches.push_back(std::move(inlined).value());
  }
  Lowered out;
  merge_results(call, branches, pivots, inside, out);
  const bool effects = std::any_of(branches.begin(), branches.end(),
                                   [](const Inlined& in) { return !in.effects.empty(); });
  if (effects || wants_done) out.done = {merge_done(call, branches, pivots, inside)};
  if (effects) out.effects = out.done;
  out.outputs.push_back({.run = std::uint32_t(runs_.size())});
  runs_.push_back(std::move(branches));
  return out;
}

// One node for each branch that is dead where the branch is. Those of the same predicate are the
// same: what a branch of If saves is there in the same branch of its gradient.
const Inliner::Pivots& Inliner::pivots(const NodeDef& call, const Value& selector,
                                       std::size_t branches, const Place& place,
                                       const Place& inside) {
  const bool shared = place.control.empty() || selector.waits;
  auto key = std::tuple(selector.port, place.pivot, branches);
  if (shared)
    if (auto at = pivots_.find(key); at != pivots_.end()) return at->second;
  if (!shared) std::get<2>(key) = ~std::size_t{0} - runs_.size();  // of this call alone
  NodeDef node = switch_node(call, "pivots", selector, selector, branches, inside);
  anchor(node, {selector}, place);
  const NodeId made = append(std::move(node));
  Pivots& out = pivots_[key];
  out.of_branch.clear();
  for (std::uint32_t b = 0; b < branches; ++b)
    out.of_branch.push_back(
        append(identity(call, "pivot_" + std::to_string(b), {made, b}, inside)));
  return out;
}

// A value as the branches have it. Handles and what is constant need no Switch.
std::vector<Value> Inliner::switched(const NodeDef& call, const Value& x, const Value& selector,
                                     const Pivots& pivots, const Place& place,
                                     const Place& inside) {
  const std::size_t branches = pivots.of_branch.size();
  if (x.run != kNoRun) return std::vector<Value>(branches, x);
  const NodeDef& source = out_.graph().nodes[x.port.node];
  if (is_handle(role_of(source, ops_)) || (source.op == "Const" && source.control.empty())) {
    Value same = x;
    same.waits = false;
    return std::vector<Value>(branches, same);
  }
  NodeDef node = switch_node(call, "Switch", x, selector, branches, inside);
  anchor(node, {x, selector}, place);
  const NodeId made = append(std::move(node));
  std::vector<Value> out;
  for (std::uint32_t b = 0; b < branches; ++b)
    out.push_back({{made, b}, pivots.of_branch[b], true});
  return out;
}

// A result that its branch does not make itself, such as a constant, dies with the pivot.
void Inliner::merge_results(const NodeDef& call, const std::vector<Inlined>& branches,
                            const Pivots& pivots, const Place& inside, Lowered& out) {
  for (std::size_t r = 0; r + 1 < call.out_types.size(); ++r) {
    std::vector<Port> parts;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      const Value& value = branches[b].results[r];
      const NodeId pivot = pivots.of_branch[b];
      parts.push_back(value.port);
      if (value.pivot == pivot) continue;
      NodeDef node = identity(call, "result", value.port, inside);
      node.control.push_back(pivot);
      parts.back() = {append(std::move(node)), 0};
    }
    NodeDef merge =
        merge_node(call, "Merge", std::move(parts), call.out_types[r], call.out_shapes[r], inside);
    out.outputs.push_back({{append(std::move(merge)), 0}, inside.pivot, true});
  }
}

NodeId Inliner::merge_done(const NodeDef& call, const std::vector<Inlined>& branches,
                           const Pivots& pivots, const Place& inside) {
  std::vector<Port> parts;
  DType dtype = DType::invalid;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    NodeDef node = identity(call, "done_" + std::to_string(b), {pivots.of_branch[b], 0}, inside);
    dtype = node.out_types[0];
    node.control = branches[b].effects;
    for (const Value& v : branches[b].results)
      if (v.pivot == pivots.of_branch[b]) node.control.push_back(v.port.node);
    parts.push_back({append(std::move(node)), 0});
  }
  return append(merge_node(call, "done", std::move(parts), dtype, PartialShape::scalar(), inside));
}

}  // namespace troupe::detail
