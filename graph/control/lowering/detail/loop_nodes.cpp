#include "graph/control/lowering/detail/loop_nodes.hpp"

#include "graph/control/functions/ops.hpp"
#include "graph/control/state/detail/state_nodes.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/node_check.hpp"

namespace troupe::detail {

void LoopNodes::read_first_values(const Value& predicate, std::vector<Value>& arguments) {
  NodeDef branch = call_;
  branch.op = "If";
  for (std::size_t v = 0; v < loop_variables(call_); ++v) {
    const NodeDef& argument = body_.nodes[body_.arguments[v]];
    const Value& given = arguments[v];
    if (argument.op != kArgumentOp || !out_.is_handle(given)) continue;
    const DType dtype = argument.out_types[0];
    const Pivots sides = branches_.pivots(branch, predicate, 2, place_, inside_);
    NodeDef nothing = scalar_constant(inside_.prefix + "nothing", none_of(dtype), call_.site);
    nothing.control = {sides[0]};
    nothing.device = inside_.device;
    nothing.colocate = inside_.colocate;
    nothing.out_shapes = argument.out_shapes;
    NodeDef read = out_.make("read", "ReadVariable", call_, inside_);
    read.device.clear(), read.colocate.clear();
    read.inputs = {given.port};
    read.control = {sides[1]};
    read.attrs.emplace("T", Attr(dtype));
    read.out_types = {dtype};
    read.out_shapes = argument.out_shapes;
    const NodeId none = out_.append(std::move(nothing)), value = out_.append(std::move(read));
    NodeDef first = branches_.make_merge(call_, "first", {{none, 0}, {value, 0}}, dtype,
                                         argument.out_shapes[0], inside_);
    arguments[v] = {{out_.append(std::move(first)), 0}, inside_.pivot, true};
  }
}

void LoopNodes::make_constants(const FunctionDef& f, const Place& before) {
  for (const NodeDef& node : f.nodes) {
    if (node.op != "Const" || !node.control.empty()) continue;
    NodeDef constant = node;
    constant.name = before.prefix + node.name;
    constant.colocate.clear();
    if (auto device = device_over(before.device, node.device); device.ok())
      constant.device = *device;
    if (!before.loop.empty() && node.device.empty()) constant.colocate.push_back(before.loop);
    const bool free = place_.frame == 0;
    if (!free) out_.anchor(constant, {}, place_);
    const NodeId made = out_.append(std::move(constant));
    constants_.index.emplace(&node, constants_.in_order.size());
    constants_.in_order.emplace_back(&node, Value{{made, 0}, free ? kNoNode : place_.pivot, !free});
  }
}

Expected<NodeId> LoopNodes::begin(const Value& predicate, std::vector<Value>& arguments) {
  NodeDef begin = out_.make("begin", kLoopBodyOp, call_, inside_);
  begin.attrs.emplace(kWindowAttr, call_.attrs.at("window"));
  const std::size_t variables = loop_variables(call_);
  begin.inputs = {predicate.port};
  std::vector<Value> taken = {predicate};
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i];
    if (!out_.is_tensor(value)) continue;
    begin.inputs.push_back(value.port);
    begin.out_types.push_back(out_.dtype(value.port));
    begin.out_shapes.push_back(i < variables ? body_.nodes[body_.arguments[i]].out_shapes[0]
                                             : out_.shape(value.port));
    taken.push_back(value);
    which.push_back(i);
  }
  for (auto& [node, value] : constants_.in_order) {
    begin.inputs.push_back(value.port);
    begin.out_types.push_back(node->out_types[0]);
    begin.out_shapes.push_back(node->out_shapes[0]);
    taken.push_back(value);
  }
  if (begin.inputs.size() > kMaxPorts)
    return in_node(resource_exhausted("a loop over " + std::to_string(begin.inputs.size()) +
                                      " values; there may be " + std::to_string(kMaxPorts)),
                   call_);
  out_.anchor(begin, taken, place_);
  passed_.assign(taken.begin() + 1, taken.end());
  const NodeId made = out_.append(std::move(begin));
  auto behind = std::uint32_t(which.size());
  for (auto& [node, value] : constants_.in_order) value = {{made, behind++}, made, true};
  for (std::uint32_t k = 0; k < which.size(); ++k) arguments[which[k]] = {{made, k}, made, true};
  return made;
}

NodeId LoopNodes::end(const Inlined& iteration, const Inlined& again, const Place& frame) {
  NodeDef next = out_.make("next", kLoopNextOp, call_, frame);
  next.name = inside_.prefix + "next";
  next.inputs = {again.results[0].port};
  for (std::size_t v = 0; v < loop_variables(call_); ++v)
    next.inputs.push_back(iteration.results[v].port);
  for (const Inlined* in : {&iteration, &again})
    next.control.insert(next.control.end(), in->effects.begin(), in->effects.end());
  next.out_types.assign(call_.out_types.begin(), call_.out_types.end() - 1);
  next.out_shapes.assign(call_.out_shapes.begin(), call_.out_shapes.end() - 1);
  return out_.append(std::move(next));
}

}  // namespace troupe::detail
