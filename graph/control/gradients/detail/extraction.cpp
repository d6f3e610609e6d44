#include "graph/control/gradients/detail/extraction.hpp"

#include "graph/control/functions/ops.hpp"

namespace troupe {

Extraction::Extraction(Tape& tape, Body& body, std::size_t branch, bool vague)
    : tape_(tape),
      body_(body),
      branch_(branch),
      to_(body.graph()),
      from_(*tape.body),
      copies_(from_, to_, [this](Port p) { return saved(p); }) {
  for (std::size_t l = 0; l < tape_.layers.size(); ++l)
    saved_.push_back(value_or_throw(
        body_.argument({DType::resource, PartialShape::unknown()}, "saved_" + std::to_string(l))));
  for (Port p : tape_.inputs) {
    const bool handle = type_of(p, false).dtype == DType::resource;
    value_or_throw(body_.argument(type_of(p, vague || handle), "x"));
  }
  for (const Output& dy : tape_.dy)
    copies_.map(dy.port(), value_or_throw(body_.argument(type_of(dy.port(), vague),
                                                         from_.node(dy.node()).name)));
}

void Extraction::run(const std::vector<std::size_t>& results) {
  for (NodeId id : needed(results))
    if (!is_dy(id)) copies_.copy(id);
  std::vector<Output> out;
  for (std::size_t i : results) out.push_back(copies_.value(tape_.dx[i].port()));
  throw_if_error(body_.returns(out));
}

ValueType Extraction::type_of(Port p, bool vague) const {
  const NodeDef& node = from_.node(p.node);
  return {node.out_types[p.index], vague ? PartialShape::unknown() : node.out_shapes[p.index]};
}

bool Extraction::is_dy(NodeId id) const {
  return copies_.has({id, 0}) && from_.node(id).inputs.empty();
}

// The new nodes that these gradients depend on.
std::set<NodeId> Extraction::needed(const std::vector<std::size_t>& results) const {
  std::set<NodeId> needed;
  std::vector<NodeId> open;
  for (std::size_t i : results) open.push_back(tape_.dx[i].node());
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    if (id < tape_.end || !needed.insert(id).second) continue;
    for (Port in : from_.node(id).inputs) open.push_back(in.node);
    for (NodeId c : from_.node(id).control) open.push_back(c);
  }
  return needed;
}

// The value of an older node, by name, from the layer that the node is in.
Output Extraction::saved(Port p) {
  const NodeDef& node = from_.node(p.node);
  std::size_t l = 0;
  while (p.node >= tape_.layers[l].end) ++l;
  // The function may know less about the shape than the tape.
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

}  // namespace troupe
