// From a While to the frame that an executor repeats (graph/control/lowering/frames.hpp).
#include <algorithm>

#include "graph/control/lowering/detail/inline.hpp"
#include "graph/control/state/detail/threading.hpp"
#include "graph/detail/device_over.hpp"
#include "graph/detail/node_check.hpp"

namespace troupe::detail {
namespace {

// What a loop hands on: no handle, and nothing that a call saved.
bool is_tensor(const Value& value, const Rewriter& out, const OpRegistry& ops) {
  return value.run == kNoRun && !is_handle(role_of(out.graph().nodes[value.port.node], ops));
}

std::string variable_text(const NodeDef& loop, std::size_t variable) {
  return "variable " + std::to_string(variable) + " of the loop " + called(loop);
}

}  // namespace

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
  TROUPE_TRY(ensure_first(call, *body, arguments, before));
  auto first = inline_function(*cond, arguments, before);
  if (!first.ok()) return in_call(first.status());

  read_first_values(call, first->results[0], *body, arguments, place, inside);
  Constants constants;
  make_constants(*cond, before, place, constants);
  make_constants(*body, before, place, constants);
  const auto number = std::uint32_t(frames_.size());
  LoopFrame& made_frame = frames_.emplace_back();
  made_frame.like = call;
  made_frame.parent = place.frame;
  made_frame.around = inside;
  made_frame.around.prefix += "saved/";
  made_frame.variables = std::uint32_t(variables);
  TROUPE_TRY(made_frame.reverses, reversed_by(call, inputs));
  Place frame = inside;
  frame.frame = number;
  TROUPE_TRY(frame.pivot, begin_loop(call, first->results[0], *body, arguments, constants, place,
                                     inside, made_frame.passed));
  frame.constants = &constants;
  frame.loop = out_.graph().nodes[frame.pivot].name;
  frame.control.clear();
  made_frame.begin = frame.pivot;
  made_frame.first_passed = made_frame.passed.size();
  made_frame.inside = frame;
  made_frame.inside.constants = nullptr;
  made_frame.inside.prefix = inside.prefix + "saved/";
  frame.prefix = inside.prefix + "body/";
  auto iteration = inline_function(*body, arguments, frame);
  if (!iteration.ok()) return in_call(iteration.status());
  TROUPE_TRY(ensure_next(call, *iteration, frame));
  std::copy(iteration->results.begin(), iteration->results.end(), arguments.begin());
  frame.prefix = inside.prefix + "cond/";
  auto again = inline_function(*cond, arguments, frame);
  if (!again.ok()) return in_call(again.status());

  NodeDef next = made("next", kLoopNextOp, call, frame);
  next.name = inside.prefix + "next";
  next.inputs = {again->results[0].port};
  for (std::size_t v = 0; v < variables; ++v) next.inputs.push_back(iteration->results[v].port);
  for (const Inlined* in : {&*iteration, &*again})
    next.control.insert(next.control.end(), in->effects.begin(), in->effects.end());
  const bool effects = !next.control.empty();
  next.out_types.assign(call.out_types.begin(), call.out_types.end() - 1);
  next.out_shapes.assign(call.out_shapes.begin(), call.out_shapes.end() - 1);
  const NodeId end = append(std::move(next));
  made_frame.next = end;
  for (const LoopFrame::Added& added : made_frame.added) add_to_next(made_frame, added.next);

  Lowered out;
  for (std::uint32_t v = 0; v < variables; ++v)
    out.outputs.push_back({{end, v}, inside.pivot, true});
  out.outputs.push_back({.run = std::uint32_t(runs_.size())});
  iteration->repeated = true;
  std::vector<Inlined>& run = runs_.emplace_back();
  run.push_back(std::move(again).value());
  run.push_back(std::move(iteration).value());
  out.effects = first->effects;
  if (effects || variables == 0) out.effects.push_back(end);
  out.done = {end};
  return out;
}

// The variables are what the body takes: first, and in each iteration.
Status Inliner::ensure_first(const NodeDef& call, const FunctionDef& body,
                             std::vector<Value>& arguments, const Place& before) {
  for (std::size_t v = 0; v < loop_variables(call) && v < arguments.size(); ++v) {
    const std::string name = "variable_" + std::to_string(v);
    TROUPE_TRY(arguments[v],
               ensured(arguments[v], body.nodes[body.arguments[v]].out_shapes[0],
                       {name, variable_text(call, v) + ", at first", call.site}, before));
  }
  return ok_status();
}

Status Inliner::ensure_next(const NodeDef& call, Inlined& iteration, const Place& frame) {
  const FunctionDef& body = *iteration.function;
  for (std::size_t v = 0; v < iteration.results.size(); ++v) {
    const NodeDef& made = body.nodes[body.results[v].node];
    const std::string name = "variable_" + std::to_string(v);
    TROUPE_TRY(iteration.results[v],
               ensured(iteration.results[v], body.nodes[body.arguments[v]].out_shapes[0],
                       {name,
                        variable_text(call, v) + ", whose next value is " + called(made) + " of " +
                            called(body),
                        made.site},
                       frame));
  }
  return ok_status();
}

// A variable of the loop that is given a handle begins as the value behind that, which is asked for
// once an iteration is to come.
void Inliner::read_first_values(const NodeDef& call, const Value& predicate,
                                const FunctionDef& body, std::vector<Value>& arguments,
                                const Place& place, const Place& inside) {
  NodeDef branch = call;
  branch.op = "If";
  for (std::size_t v = 0; v < loop_variables(call); ++v) {
    const NodeDef& argument = body.nodes[body.arguments[v]];
    const Value& given = arguments[v];
    if (given.run != kNoRun || argument.op != kArgumentOp ||
        !is_handle(role_of(out_.graph().nodes[given.port.node], ops_)))
      continue;
    const DType dtype = argument.out_types[0];
    const std::vector<NodeId> sides = pivots(branch, predicate, 2, place, inside).of_branch;
    NodeDef nothing = scalar_constant(inside.prefix + "nothing", none_of(dtype), call.site);
    nothing.control = {sides[0]};
    nothing.device = inside.device;
    nothing.colocate = inside.colocate;
    nothing.out_shapes = argument.out_shapes;
    NodeDef read = made("read", "ReadVariable", call, inside);
    read.device.clear(), read.colocate.clear();
    read.inputs = {given.port};
    read.control = {sides[1]};
    read.attrs.emplace("T", Attr(dtype));
    read.out_types = {dtype};
    read.out_shapes = argument.out_shapes;
    const NodeId none = append(std::move(nothing)), value = append(std::move(read));
    NodeDef first =
        merge_node(call, "first", {{none, 0}, {value, 0}}, dtype, argument.out_shapes[0], inside);
    arguments[v] = {{append(std::move(first)), 0}, inside.pivot, true};
  }
}

// The loop whose iterations this one goes back over.
Expected<std::uint32_t> Inliner::reversed_by(const NodeDef& call,
                                             const std::vector<Value>& inputs) const {
  const auto argument = std::size_t(*call.attrs.at("reverses").get<std::int64_t>());
  if (argument == ~std::size_t{0}) return std::uint32_t{0};
  if (argument >= inputs.size())
    return in_node(invalid_argument("it goes back over what is none of its arguments"), call);
  TROUPE_TRY(const Inlined* body, run_of_loop(call, inputs[argument]));
  return body->frame;
}

// What is the same in each iteration is there once.
void Inliner::make_constants(const FunctionDef& f, const Place& before, const Place& around,
                             Constants& out) {
  for (const NodeDef& node : f.nodes) {
    if (node.op != "Const" || !node.control.empty()) continue;
    NodeDef constant = node;
    constant.name = before.prefix + node.name;
    constant.colocate.clear();
    if (auto device = device_over(before.device, node.device); device.ok())
      constant.device = *device;
    if (!before.loop.empty() && node.device.empty()) constant.colocate.push_back(before.loop);
    const bool free = around.frame == 0;
    if (!free) anchor(constant, {}, around);
    const NodeId made = append(std::move(constant));
    out.index.emplace(&node, out.in_order.size());
    out.in_order.emplace_back(&node, Value{{made, 0}, free ? kNoNode : around.pivot, !free});
  }
}

// The node that begins an iteration; `arguments` become what the functions get in it.
Expected<NodeId> Inliner::begin_loop(const NodeDef& call, const Value& first,
                                     const FunctionDef& body, std::vector<Value>& arguments,
                                     Constants& constants, const Place& place, const Place& inside,
                                     std::vector<Value>& before) {
  NodeDef begin = made("begin", kLoopBodyOp, call, inside);
  begin.attrs.emplace(kWindowAttr, call.attrs.at("window"));
  const std::size_t variables = loop_variables(call);
  begin.inputs = {first.port};
  std::vector<Value> passed = {first};
  std::vector<std::size_t> which;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Value& value = arguments[i];
    if (!is_tensor(value, out_, ops_)) continue;
    const NodeDef& source = out_.graph().nodes[value.port.node];
    begin.inputs.push_back(value.port);
    begin.out_types.push_back(source.out_types[value.port.index]);
    begin.out_shapes.push_back(i < variables ? body.nodes[body.arguments[i]].out_shapes[0]
                                             : source.out_shapes[value.port.index]);
    passed.push_back(value);
    which.push_back(i);
  }
  for (auto& [node, value] : constants.in_order) {
    begin.inputs.push_back(value.port);
    begin.out_types.push_back(node->out_types[0]);
    begin.out_shapes.push_back(node->out_shapes[0]);
    passed.push_back(value);
  }
  if (begin.inputs.size() > kMaxPorts)
    return in_node(resource_exhausted("a loop over " + std::to_string(begin.inputs.size()) +
                                      " values; there may be " + std::to_string(kMaxPorts)),
                   call);
  anchor(begin, passed, place);
  before.assign(passed.begin() + 1, passed.end());
  const NodeId made = append(std::move(begin));
  auto behind = std::uint32_t(which.size());
  for (auto& [node, value] : constants.in_order) value = {{made, behind++}, made, true};
  for (std::uint32_t k = 0; k < which.size(); ++k) arguments[which[k]] = {{made, k}, made, true};
  return made;
}

}  // namespace troupe::detail
