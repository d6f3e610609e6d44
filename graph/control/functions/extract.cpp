#include "graph/control/functions/ops.hpp"
#include "graph/control/gradients/detail/tape.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostCloned = 64;  // elements

}  // namespace

// --- a function in the making ---

Extraction::Extraction(Tape& tape, Body& body, std::size_t branch, bool vague)
    : tape_(tape), body_(body), branch_(branch), to_(body.graph()), from_(*tape.body) {
  for (std::size_t l = 0; l < tape_.layers.size(); ++l)
    saved_.push_back(value_or_throw(
        body_.argument({DType::resource, PartialShape::unknown()}, "saved_" + std::to_string(l))));
  for (Port p : tape_.inputs) {
    const bool handle = type_of(p, false).dtype == DType::resource;
    value_or_throw(body_.argument(type_of(p, vague || handle), "x"));
  }
  for (const Output& dy : tape_.dy)
    here_.emplace(dy.port(), value_or_throw(body_.argument(type_of(dy.port(), vague),
                                                           from_.node(dy.node()).name)));
}

void Extraction::run(const std::vector<std::size_t>& results) {
  std::vector<Output> out;
  for (std::size_t i : results) need(tape_.dx[i].port());
  for (NodeId id = tape_.end; id < from_.def().nodes.size(); ++id)
    if (needed_.contains(id) && !is_dy(id)) move(id);
  for (std::size_t i : results) out.push_back(here(tape_.dx[i].port()));
  throw_if_error(body_.returns(out));
}

ValueType Extraction::type_of(Port p, bool vague) const {
  const NodeDef& node = from_.node(p.node);
  return {node.out_types[p.index], vague ? PartialShape::unknown() : node.out_shapes[p.index]};
}

bool Extraction::is_dy(NodeId id) const {
  return here_.contains({id, 0}) && from_.node(id).inputs.empty();
}

void Extraction::need(Port p) {
  std::vector<NodeId> open{p.node};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id < tape_.end || !needed_.insert(id).second) continue;
    for (Port in : from_.node(id).inputs) open.push_back(in.node);
    for (NodeId c : from_.node(id).control) open.push_back(c);
  }
}

void Extraction::move(NodeId id) {
  const NodeDef& node = from_.node(id);
  std::vector<Output> inputs;
  for (Port p : node.inputs) inputs.push_back(here(p));
  NodeSpec spec = moved_node(from_, id, std::move(inputs));
  for (NodeId c : node.control)
    if (c >= tape_.end && moved_.contains(c)) spec.control.push_back(moved_.at(c));
  const Op made = to_.add(std::move(spec));
  moved_.emplace(id, made);
  for (std::uint32_t k = 0; k < node.out_types.size(); ++k)
    here_.emplace(Port{id, k}, made.output(int(k)));
}

// A port of the tape in the gradient function.
Output Extraction::here(Port p) {
  if (auto at = here_.find(p); at != here_.end()) return at->second;
  const Tensor* known = small_constant(from_, p);
  const Output made = known ? clone_constant(to_, from_, p, *known) : saved(p);
  return here_.emplace(p, made).first->second;
}

Output Extraction::saved(Port p) {
  const NodeDef& node = from_.node(p.node);
  std::size_t l = 0;
  while (p.node >= tape_.layers[l].end) ++l;
  // The function may know less of its shape than the tape does.
  GraphBuilder& body = *to_.function(tape_.layers[l].function)->body;
  const PartialShape& shape = body.find(node.name).output(int(p.index)).shape();
  NodeSpec spec{.op = std::string(kSavedOp), .inputs = {saved_[l]}, .name = "saved/" + node.name};
  spec.attrs = {{"T", node.out_types[p.index]},
                {"shape", shape},
                {"function", tape_.layers[l].function},
                {"branch", std::int64_t(branch_)},
                {"node", node.name},
                {"port", std::int64_t(p.index)}};
  spec.site = node.site;
  return to_.add(std::move(spec)).output();
}

const Tensor* small_constant(const GraphBuilder& from, Port p) {
  const Tensor* known = from.constant(p);
  return known && known->elements() <= kMostCloned ? known : nullptr;
}

Output clone_constant(GraphBuilder& to, const GraphBuilder& from, Port p, const Tensor& value) {
  NodeSpec spec{.op = "Const", .attrs = {{"T", value.dtype()}, {"value", value}}};
  spec.name = "saved/" + from.node(p.node).name;
  spec.site = from.node(p.node).site;
  return to.add(std::move(spec)).output();
}

NodeSpec moved_node(const GraphBuilder& from, NodeId id, std::vector<Output> inputs) {
  const NodeDef& node = from.node(id);
  NodeSpec spec{.op = node.op, .attrs = node.attrs, .name = node.name, .device = node.device};
  spec.inputs = std::move(inputs);
  spec.site = node.site;
  spec.colocate = node.colocate;
  // Said again of what is known there.
  for (const char* of_call : {"Tout", "shapes"})
    if (from.registry().find(node.op)->def.role == Role::call) spec.attrs.erase(of_call);
  return spec;
}

void extract(Tape& tape, const std::vector<std::size_t>& results, std::size_t branch, bool vague,
             Body& body) {
  Extraction(tape, body, branch, vague).run(results);
}

}  // namespace troupe
