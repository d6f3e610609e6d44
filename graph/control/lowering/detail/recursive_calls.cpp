#include "graph/control/lowering/detail/recursive_calls.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"
#include "graph/detail/node_check.hpp"

namespace troupe::detail {

bool RecursiveCalls::stays(const FunctionDef& f, const std::vector<Value>& inputs) const {
  return functions_.recursion().calls_itself[functions_.index(f)] || budget_.is_called(f) ||
         std::any_of(inputs.begin(), inputs.end(), [&](const Value& v) {
           return v.run != kNoRun && records_.of_run(v.run) != nullptr;
         });
}

Expected<Lowered> RecursiveCalls::lower(const NodeDef& call, const FunctionDef& f,
                                        std::vector<Value> inputs, const Place& inside,
                                        InlineBody inline_body) {
  TROUPE_TRY(check_passed(call, f, inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TROUPE_TRY(inputs[i], shapes_.argument(f, i, inputs[i], inside));
  }
  if (region_) return invoke(call, f, inputs, inside);
  TROUPE_TRY(std::vector<Value> arguments, passed(call, inputs, inside));
  Region region{.call = call, .inside = inside, .device = {}, .members = {}, .known = {}};
  if (auto named = DeviceName::parse(inside.device); named.ok()) region.device = *named;
  region_ = &region;
  auto begun = member_of(region, f, inputs, arguments);
  Status lowered = begun.status();
  for (std::size_t m = 0; m < region.members.size() && lowered.ok(); ++m)
    lowered = lower_member(*region.members[m], inline_body);
  region_ = nullptr;
  if (!lowered.ok()) return lowered.in("in the call '" + call.name + "' of " + called(f));
  RecursiveFunction& first = *region.members.front();
  end_function(region, first);
  return call_of(first, first.end, inside);
}

// Makes the _Invoke for a call within the region.
Expected<Lowered> RecursiveCalls::invoke(const NodeDef& call, const FunctionDef& f,
                                         const std::vector<Value>& inputs, const Place& inside) {
  TROUPE_TRY(RecursiveFunction* const found, member_of(*region_, f, inputs, {}));
  RecursiveFunction& member = *found;
  TROUPE_TRY(const std::vector<Value> arguments, passed(call, inputs, inside));
  NodeDef node = out_.make("", kInvokeOp, call, inside);
  node.name = inside.prefix.substr(0, inside.prefix.size() - 1);
  node.attrs.emplace("function", Attr(std::int64_t(member.number)));
  for (const Value& value : arguments) node.inputs.push_back(value.port);
  node.out_types = f.result_types;
  node.out_shapes = f.result_shapes;
  out_.anchor(node, arguments, inside);
  const NodeId made = out_.append(std::move(node));
  if (member.has_record()) {
    out_.edit(made).out_types.push_back(DType::list);
    out_.edit(made).out_shapes.push_back(PartialShape::unknown());
  }
  return call_of(member, made, inside);
}

// The outputs of a call's node. Its record may be added later.
Lowered RecursiveCalls::call_of(RecursiveFunction& member, NodeId made, const Place& inside) {
  const auto results = std::uint32_t(member.function->result_types.size());
  member.calls.push_back(made);
  records_.has_records(made, inside.frame);
  Lowered out;
  for (std::uint32_t k = 0; k < results; ++k)
    out.outputs.push_back({{made, k}, inside.pivot, true});
  out.outputs.push_back({{made, results}, inside.pivot, true, member.run});
  if (member.effects) out.effects.push_back(made);
  out.done = {made};
  return out;
}

Status RecursiveCalls::check_passed(const NodeDef& call, const FunctionDef& f,
                                    const std::vector<Value>& inputs) const {
  if (inputs.size() != f.arguments.size())
    return in_node(invalid_argument(called(f) + " takes " + std::to_string(f.arguments.size()) +
                                    " arguments, not " + std::to_string(inputs.size())),
                   call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = inputs[i];
    const NodeDef& argument = f.nodes[f.arguments[i]];
    if (!out_.is_handle(value) && argument.op != kArgumentOp)
      return in_node(
          invalid_argument(called(f) + ": argument '" + argument.name + "' must be a handle"),
          call);
    if (value.run == kNoRun || records_.of_run(value.run)) continue;
    return in_node(invalid_argument("what another kind of call saved is passed to " + called(f)),
                   call);
  }
  return ok_status();
}

// Checked here, since placement ignores constraints that cannot hold for all nodes.
Status RecursiveCalls::check_device(const NodeDef& node) {
  if (node.device.empty()) return ok_status();
  const auto wanted = DeviceName::parse(node.device);
  if (!wanted.ok()) return in_node(wanted.status(), node);
  auto both = DeviceName::merge(region_->device, *wanted);
  if (!both.ok())
    return in_node(
        unimplemented("it names " + node.device + ", what is around it " + region_->device.text() +
                      "; a function that calls itself runs on one device"),
        node);
  region_->device = std::move(both).value();
  return ok_status();
}

// The values that a call passes. A resource handle is the same in all calls that reach it, so it is
// not passed. Of several `saved` handles, only the record of the last call is: that call reversed
// those before it.
Expected<std::vector<Value>> RecursiveCalls::passed(const NodeDef& call,
                                                    const std::vector<Value>& inputs,
                                                    const Place& inside) {
  std::size_t handles = 0;
  for (const Value& value : inputs) handles += value.run != kNoRun;
  std::vector<Value> out;
  for (Value value : inputs) {
    if (value.run == kNoRun) {
      if (!out_.is_handle(value)) out.push_back(value);
      continue;
    }
    if (--handles > 0) continue;
    const std::uint32_t* frame = records_.frame_of(value.port.node);
    if (!frame) return in_node(invalid_argument("it hands on what another call saved"), call);
    records_.begin(*records_.of_run(value.run));
    value.run = kNoRun;
    TROUPE_TRY(Value record, saved_.bring(value, *frame, inside.frame));
    out.push_back(record);
  }
  return out;
}

// `passed`: the values that the call from outside passes to the first function.
Expected<RecursiveFunction*> RecursiveCalls::member_of(Region& region, const FunctionDef& f,
                                                       const std::vector<Value>& inputs,
                                                       const std::vector<Value>& passed) {
  std::vector<std::uint32_t> handles, all;
  std::map<NodeId, Value> bound;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = inputs[i];
    if (value.run != kNoRun) handles.push_back(value.run), all.push_back(value.run);
    if (out_.is_handle(value)) bound.emplace(f.arguments[i], value), all.push_back(value.port.node);
  }
  auto [known, fresh] = region.known.try_emplace({&f, all}, nullptr);
  if (!fresh) return known->second;
  RecursiveFunction* const reverses = handles.empty() ? nullptr : records_.of_run(handles.back());
  const std::uint32_t run = saved_.add_run({});
  const std::uint32_t frame =
      loops_.add_function(region.call, region.inside.frame, reverses ? reverses->frame : 0);
  RecursiveFunction& member = records_.add(f, run, frame);
  known->second = &member;
  region.members.push_back(&member);
  member.number = std::uint32_t(region.members.size()) - 1;
  member.effects = functions_.recursion().has_effects[functions_.index(f)];
  member.reverses = reverses;
  member.handles = std::move(handles);
  member.bound = std::move(bound);
  TROUPE_TRY(begin_function(region, member, passed));
  return &member;
}

// The last `saved` handle is passed as a record.
Status RecursiveCalls::begin_function(Region& region, RecursiveFunction& member,
                                      const std::vector<Value>& passed) {
  const FunctionDef& f = *member.function;
  Place body = region.inside;
  body.prefix += member.number == 0 ? "body/" : "body_" + std::to_string(member.number) + "/";
  NodeDef begin =
      out_.make("begin", kFunctionBodyOp, region.call, member.number == 0 ? region.inside : body);
  begin.attrs.emplace("function", Attr(std::int64_t(member.number)));
  begin.attrs.emplace("name", Attr(f.name + " (" + f.site.text() + ")"));
  std::size_t handles = 0;
  for (NodeId id : f.arguments) {
    if (member.bound.contains(id)) continue;
    const bool handle = f.nodes[id].out_types[0] == DType::resource;
    if (handle && ++handles < member.handles.size()) continue;
    begin.out_types.push_back(handle ? DType::list : f.nodes[id].out_types[0]);
    begin.out_shapes.push_back(handle ? PartialShape::unknown() : f.nodes[id].out_shapes[0]);
  }
  if (begin.out_types.size() > kMaxPorts)
    return in_node(resource_exhausted(called(f) + " has too many arguments"), region.call);
  for (const Value& value : passed) begin.inputs.push_back(value.port);
  if (member.number == 0)
    out_.anchor(begin, passed, region.inside);
  else
    begin.control = {region.members.front()->begin};
  member.begin = out_.append(std::move(begin));
  records_.has_records(member.begin, member.frame);
  if (member.number == 0) region.inside.loop = out_.node(member.begin).name;
  body.loop = region.inside.loop;
  body.pivot = member.begin;
  body.frame = member.frame;
  body.control.clear();
  body.constants = nullptr;
  member.body = member.inside = body;
  member.inside.prefix += "saved/";
  return ok_status();
}

Status RecursiveCalls::lower_member(RecursiveFunction& member, InlineBody inline_body) {
  const FunctionDef& f = *member.function;
  std::vector<Value> arguments;
  std::size_t handles = 0;
  std::uint32_t output = 0;
  for (NodeId id : f.arguments) {
    Value& argument = arguments.emplace_back();
    if (const auto bound = member.bound.find(id); bound != member.bound.end()) {
      argument = bound->second;
      continue;
    }
    const bool handle = f.nodes[id].out_types[0] == DType::resource;
    if (handle) argument.run = member.handles[handles++];
    if (handle && handles < member.handles.size()) continue;
    argument.port = {member.begin, output++};
    argument.pivot = member.begin;
    argument.waits = true;
    if (handle) member.recalled_from = argument.port;
  }
  auto inlined = inline_body(f, arguments, member.body);
  if (!inlined.ok()) return inlined.status().in("in " + called(f));
  saved_.set_run(member.run, std::move(inlined).value());
  if (member.number != 0) end_function(*region_, member);
  return ok_status();
}

// The end of the function called from outside comes after those of all others.
void RecursiveCalls::end_function(Region& region, RecursiveFunction& member) {
  const FunctionDef& f = *member.function;
  const Inlined& body = saved_.run(member.run).front();
  NodeDef end = out_.make("return", kFunctionReturnOp, region.call,
                          member.number == 0 ? region.inside : member.body);
  for (const Value& result : body.results) end.inputs.push_back(result.port);
  end.control = body.effects;
  end.control.push_back(member.begin);
  if (member.number == 0) {
    end.out_types = f.result_types;
    end.out_shapes = f.result_shapes;
    for (const RecursiveFunction* other : region.members)
      if (other->number != 0) end.control.push_back(other->end);
  }
  const bool records = member.has_record();
  if (records) end.inputs.push_back(member.record);
  if (records && member.number == 0) {
    end.out_types.push_back(DType::list);
    end.out_shapes.push_back(PartialShape::unknown());
  }
  member.end = out_.append(std::move(end));
}

}  // namespace troupe::detail
