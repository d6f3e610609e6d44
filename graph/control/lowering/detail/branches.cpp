#include "graph/control/lowering/detail/branches.hpp"

#include "graph/control/lowering/deadness.hpp"

namespace troupe::detail {

Pivots Branches::pivots(const NodeDef& call, const Value& selector, std::size_t branches,
                        const Place& place, const Place& inside) {
  const bool shared = place.control.empty() || selector.waits;
  const auto key = std::tuple(selector.port, place.pivot, branches);
  if (shared)
    if (auto at = pivots_.find(key); at != pivots_.end()) return at->second;
  NodeDef node = make_switch(call, "pivots", selector, selector, branches, inside);
  out_.anchor(node, {selector}, place);
  const NodeId made = out_.append(std::move(node));
  Pivots pivots;
  for (std::uint32_t b = 0; b < branches; ++b)
    pivots.push_back(
        out_.append(out_.make_identity(call, "pivot_" + std::to_string(b), {made, b}, inside)));
  if (shared) pivots_.emplace(key, pivots);
  return pivots;
}

std::vector<Value> Branches::switched(const NodeDef& call, const Value& x, const Value& selector,
                                      const Pivots& pivots, const Place& place,
                                      const Place& inside) {
  const std::size_t branches = pivots.size();
  if (x.run != kNoRun) return std::vector<Value>(branches, x);
  const NodeDef& source = out_.node(x.port.node);
  if (out_.is_handle(x) || (source.op == "Const" && source.control.empty())) {
    Value same = x;
    same.waits = false;
    return std::vector<Value>(branches, same);
  }
  NodeDef node = make_switch(call, "Switch", x, selector, branches, inside);
  out_.anchor(node, {x, selector}, place);
  const NodeId made = out_.append(std::move(node));
  std::vector<Value> values;
  for (std::uint32_t b = 0; b < branches; ++b) values.push_back({{made, b}, pivots[b], true});
  return values;
}

// A result that its branch does not compute, such as a constant, is dead if the branch's pivot is.
void Branches::merge_results(const NodeDef& call, const std::vector<Inlined>& branches,
                             const Pivots& pivots, const Place& inside, Lowered& out) {
  for (std::size_t r = 0; r + 1 < call.out_types.size(); ++r) {
    std::vector<Port> parts;
    for (std::size_t b = 0; b < branches.size(); ++b) {
      const Value& value = branches[b].results[r];
      const NodeId pivot = pivots[b];
      parts.push_back(value.port);
      if (value.pivot == pivot) continue;
      NodeDef node = out_.make_identity(call, "result", value.port, inside);
      node.control.push_back(pivot);
      parts.back() = {out_.append(std::move(node)), 0};
    }
    NodeDef merge =
        make_merge(call, "Merge", std::move(parts), call.out_types[r], call.out_shapes[r], inside);
    out.outputs.push_back({{out_.append(std::move(merge)), 0}, inside.pivot, true});
  }
}

NodeId Branches::merge_done(const NodeDef& call, const std::vector<Inlined>& branches,
                            const Pivots& pivots, const Place& inside) {
  std::vector<Port> parts;
  DType dtype = DType::invalid;
  for (std::size_t b = 0; b < branches.size(); ++b) {
    NodeDef node = out_.make_identity(call, "done_" + std::to_string(b), {pivots[b], 0}, inside);
    dtype = node.out_types[0];
    node.control = branches[b].effects;
    for (const Value& v : branches[b].results)
      if (v.pivot == pivots[b]) node.control.push_back(v.port.node);
    parts.push_back({out_.append(std::move(node)), 0});
  }
  return out_.append(
      make_merge(call, "done", std::move(parts), dtype, PartialShape::scalar(), inside));
}

NodeDef Branches::make_merge(const NodeDef& call, std::string_view name, std::vector<Port> inputs,
                             DType dtype, PartialShape shape, const Place& inside) const {
  NodeDef node = out_.make(name, "Merge", call, inside);
  node.attrs.emplace("T", Attr(dtype));
  node.attrs.emplace("N", Attr(std::int64_t(inputs.size())));
  // It always runs if only an iteration or a call is around it.
  const bool in_branch = inside.pivot != kNoNode && out_.node(inside.pivot).op != kLoopBodyOp &&
                         out_.node(inside.pivot).op != kFunctionBodyOp;
  if (in_branch) node.attrs.emplace(kConditionalAttr, Attr(true));
  node.inputs = std::move(inputs);
  node.out_types = {dtype, DType::i32};
  node.out_shapes = {std::move(shape), PartialShape::scalar()};
  return node;
}

// Placed where the value is made, so that nothing is sent to a branch that is not taken.
NodeDef Branches::make_switch(const NodeDef& call, std::string_view name, const Value& x,
                              const Value& selector, std::size_t branches,
                              const Place& inside) const {
  const NodeDef& source = out_.node(x.port.node);
  const DType type = out_.dtype(x.port);
  NodeDef node = out_.make(name, call.op == "If" ? "Switch" : "SwitchN", call, inside);
  if (source.op != kFeedOp) {
    node.device = source.device;
    if (!inside.loop.empty()) node.colocate = {source.name};
  }
  node.inputs = {x.port, selector.port};
  node.out_types.assign(branches, type);
  node.out_shapes.assign(branches, out_.shape(x.port));
  node.attrs.emplace("T", Attr(type));
  if (call.op == "If") return node;
  node.attrs.emplace("N", Attr(std::int64_t(branches)));
  node.attrs.emplace("Tidx", Attr(out_.dtype(selector.port)));
  return node;
}

}  // namespace troupe::detail
