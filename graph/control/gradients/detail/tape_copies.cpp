#include "graph/control/gradients/detail/tape_copies.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostCloned = 64;  // elements

}  // namespace

const Tensor* small_constant(const GraphBuilder& from, Port p) {
  const Tensor* known = from.constant(p);
  return known && known->elements() <= kMostCloned ? known : nullptr;
}

Output TapeCopies::value(Port p) {
  if (auto at = values_.find(p); at != values_.end()) return at->second;
  const Tensor* known = small_constant(from_, p);
  if (!known) return values_.emplace(p, missing_(p)).first->second;
  NodeSpec spec{.op = "Const", .attrs = {{"T", known->dtype()}, {"value", *known}}};
  spec.name = "saved/" + from_.node(p.node).name;
  spec.site = from_.node(p.node).site;
  return values_.emplace(p, to_.add(std::move(spec)).output()).first->second;
}

void TapeCopies::copy(NodeId id) {
  const NodeDef& node = from_.node(id);
  NodeSpec spec{.op = node.op, .name = node.name, .device = node.device};
  for (Port p : node.inputs) spec.inputs.push_back(value(p));
  spec.attrs = node.attrs;
  spec.site = node.site;
  spec.colocate = node.colocate;
  // The results of a call are inferred again from what is known about its arguments there.
  if (from_.registry().find(node.op)->def.role == Role::call)
    for (const char* of_results : {"Tout", "shapes"}) spec.attrs.erase(of_results);
  for (NodeId c : node.control)
    if (auto at = made_.find(c); at != made_.end()) spec.control.push_back(at->second);
  const std::size_t outputs = node.out_types.size();
  const Op made = to_.add(std::move(spec));
  made_.emplace(id, made);
  for (std::uint32_t k = 0; k < outputs; ++k) values_.emplace(Port{id, k}, made.output(int(k)));
}

}  // namespace troupe
