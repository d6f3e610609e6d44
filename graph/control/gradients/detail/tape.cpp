#include "graph/control/gradients/detail/tape.hpp"

#include "graph/control/functions/ops.hpp"
#include "graph/node_query.hpp"

namespace troupe {

Tape tape_of(const FunctionRecord& record) {
  if (record.loaded_gradient)
    throw Error(unimplemented("gradients: '" + record.body->body()->function +
                              "' is a gradient function of a saved graph, which has no further "
                              "gradient")
                    .at(record.body->body()->site));
  Tape tape;
  const GraphBuilder& from = record.tape ? *record.tape : *record.body;
  tape.body = from.clone();
  tape.end = NodeId(from.def().nodes.size());
  if (record.tape) {
    tape.layers = record.layers;
    tape.inputs = record.inputs;
    tape.outputs = record.outputs;
    return tape;
  }
  const BodyState& state = *from.body();
  tape.layers = {{state.function, 0, tape.end}};
  for (NodeId id : state.arguments) tape.inputs.push_back({id, 0});
  for (const Output& o : record.results) tape.outputs.push_back(o.port());
  return tape;
}

void remember(Tape& tape, const std::vector<std::size_t>& results, const std::string& name,
              FunctionRecord& made) {
  made.handles = tape.layers.size();
  made.layers = tape.layers;
  made.layers.push_back({name, tape.end, NodeId(tape.body->def().nodes.size())});
  made.inputs = tape.inputs;
  for (const Output& dy : tape.dy) made.inputs.push_back(dy.port());
  for (std::size_t i : results) made.outputs.push_back(tape.dx[i].port());
  made.tape = std::move(tape.body);
}

Output zeros_of_variable(GraphBuilder& g, const Output& handle, DType dtype) {
  if (!handle.shape().fully_known())
    throw Error(unimplemented("the gradient of '" + handle.name() +
                              "', whose shape is not known, where it may not be read")
                    .at(handle.graph().node(handle.node()).site));
  auto constant = [&](Tensor value) {
    const DType type = value.dtype();
    return g.add("Const", {}, {{"T", type}, {"value", std::move(value)}});
  };
  const Shape shape = handle.shape().shape();
  const std::vector<std::int64_t> list(shape.dims().begin(), shape.dims().end());
  return g.add("Fill", {constant(Tensor::of<std::int64_t>({std::int64_t(list.size())}, list)),
                        constant(value_or_throw(Tensor::zeros(dtype, Shape{})))});
}

Output add_argument(GraphBuilder& g, const ValueType& type, std::string_view name) {
  return g
      .add(NodeSpec{.op = std::string(kArgumentOp),
                    .attrs = {{"T", type.dtype}, {"shape", type.shape}},
                    .name = std::string(name)})
      .output();
}

bool is_first_of_variable(const Output& x, std::set<std::string>& known) {
  const GraphBuilder& g = x.graph();
  const NodeDef& node = g.node(x.node());
  const bool handle = is_handle(op_of(node, g.registry()).def.role);
  return !handle || known.insert(resource_key(node, g.registry())).second;
}

Differentiating::Differentiating(FunctionRecord& record) : record_(record) {
  if (record.differentiating)
    throw Error(unimplemented("function '" + record.body->body()->function +
                              "' calls itself, but by a branch or loop; only a Call of it may")
                    .at(record.body->body()->site));
  record_.differentiating = true;
}

}  // namespace troupe
