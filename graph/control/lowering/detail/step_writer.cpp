#include "graph/control/lowering/detail/step_writer.hpp"

#include <algorithm>

namespace troupe::detail {

Port StepWriter::origin(Port value) const {
  while (node(value.node).op == kLoopNextOp || node(value.node).op == kLoopBodyOp)
    value = node(value.node).inputs[value.index + 1];
  return value;
}

NodeDef StepWriter::make(std::string_view name, std::string_view op, const NodeDef& call,
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

NodeDef StepWriter::make_identity(const NodeDef& call, std::string_view name, Port of,
                                  const Place& inside) const {
  NodeDef node = make(name, "Identity", call, inside);
  node.inputs = {of};
  node.out_types = {dtype(of)};
  node.out_shapes = {shape(of)};
  node.attrs.emplace("T", Attr(node.out_types[0]));
  return node;
}

void StepWriter::anchor(NodeDef& node, const std::vector<Value>& inputs, const Place& place) const {
  const bool dies = std::any_of(inputs.begin(), inputs.end(),
                                [&](const Value& v) { return v.pivot == place.pivot; });
  const bool waits =
      std::any_of(inputs.begin(), inputs.end(), [](const Value& v) { return v.waits; });
  if (place.pivot != kNoNode && !dies) node.control.push_back(place.pivot);
  if (!waits) node.control.insert(node.control.end(), place.control.begin(), place.control.end());
}

NodeId StepWriter::append(NodeDef node) {
  node.name = names_.take(node.name);
  return out_.append(std::move(node));
}

NodeId StepWriter::append_pivot(const NodeDef& call, const std::vector<Value>& values,
                                const std::vector<NodeId>& behind, Place inside) {
  NodeId last = kNoNode;
  inside.prefix += call.name + "/";
  inside.device = call.device;
  inside.colocate = call.colocate;
  for (const Value& v : values) {
    NodeDef node = make_identity(call, "pivot", v.port, inside);
    if (last != kNoNode) node.control.push_back(last);
    last = append(std::move(node));
  }
  if (behind.empty()) return last;
  NodeDef node = make("pivot", "Const", call, inside);
  node.control = behind;
  if (last != kNoNode) node.control.push_back(last);
  node.attrs = {{"T", DType::bool_}, {"value", Tensor::scalar(true)}};
  node.out_types = {DType::bool_};
  node.out_shapes = {PartialShape::scalar()};
  return append(std::move(node));
}

NodeId StepWriter::append_result(const NodeDef& call, const Value& value) {
  Place inside{.prefix = call.name + "/", .device = call.device, .colocate = call.colocate};
  return append(make_identity(call, "result", value.port, inside));
}

NodeId StepWriter::append_over(const std::string& name, std::vector<NodeId> effects,
                               const NodeDef& like, const Place& place) {
  NodeDef trigger = make(name + "/over", "ControlTrigger", like, place);
  trigger.device = like.device;
  trigger.colocate = like.colocate;
  trigger.control = std::move(effects);
  return append(std::move(trigger));
}

}  // namespace troupe::detail
