// Of lowering: a call, and the Switches and Merges around branches.
#include <algorithm>

#include "graph/control/lowering/conditional.hpp"
#include "graph/control/lowering/detail/inline.hpp"

namespace troupe::detail {

// --- nodes made here ---

NodeDef Inliner::made(std::string_view name, std::string_view op, const NodeDef& call,
                      const Place& inside) const {
  NodeDef node;
  node.name = inside.prefix + std::string(name);
  node.op = op;
  node.device = inside.device;
  node.colocate = inside.colocate;
  node.replica = inside.replica;
  if (!inside.loop.empty()) node.colocate.push_back(inside.loop);
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
  if (source.op != kFeedOp) {
    node.device = source.device;
    if (!inside.loop.empty()) node.colocate = {source.name};
  }
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
  // What only an iteration or a call is around is there in each.
  const bool in_branch = inside.pivot != kNoNode &&
                         out_.graph().nodes[inside.pivot].op != kLoopBodyOp &&
                         out_.graph().nodes[inside.pivot].op != kFunctionBodyOp;
  if (in_branch) node.attrs.emplace(kConditionalAttr, Attr(true));
  node.inputs = std::move(inputs);
  node.out_types = {dtype, DType::i32};
  node.out_shapes = {std::move(shape), PartialShape::scalar()};
  return node;
}

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
      return in_node(invalid_argument("its predicate or index is no value"), call);
  if (call.op == "While") return lower_loop(call, values, place, inside);
  return call.op == "Call" ? lower_call(call, values, inside, wants_done)
                           : lower_branches(call, values, place, inside, wants_done);
}

Expected<Lowered> Inliner::lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& inside, bool wants_done) {
  TROUPE_TRY(const FunctionDef* f, enter(functions_of(call)[0], call, inside));
  if (stays(*f, inputs)) return lower_recursive(call, *f, inputs, inside);
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
