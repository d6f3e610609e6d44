// Of lowering: functions that call themselves, which are not put in the place of their calls
// (graph/control/functions/recursion.hpp).
#include <algorithm>

#include "graph/control/lowering/detail/inline.hpp"
#include "graph/detail/node_check.hpp"

namespace troupe::detail {

bool Inliner::stays(const FunctionDef& f, const std::vector<Value>& inputs) const {
  const auto at = std::size_t(&f - functions_.data());
  return recursion_.calls_itself[at] || called_[at] ||
         std::any_of(inputs.begin(), inputs.end(), [&](const Value& v) {
           return v.run != kNoRun && member_of_run(v.run) != nullptr;
         });
}

// A call from outside, or from a function that such a call has reached.
Expected<Lowered> Inliner::lower_recursive(const NodeDef& call, const FunctionDef& f,
                                           std::vector<Value> inputs, const Place& inside) {
  TROUPE_TRY(check_passed(call, f, inputs));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TROUPE_TRY(inputs[i], ensured_argument(f, i, inputs[i], inside));
  }
  if (region_) return invoke(call, f, inputs, inside);
  TROUPE_TRY(std::vector<Value> arguments, passed(call, inputs, inside));
  Region region{.call = call, .inside = inside, .device = {}, .members = {}, .known = {}};
  if (auto named = DeviceName::parse(inside.device); named.ok()) region.device = *named;
  region_ = &region;
  std::vector<const FunctionDef*> around;
  open_.swap(around);
  auto begun = member_of(region, f, inputs, arguments);
  Status lowered = begun.status();
  for (std::size_t m = 0; m < region.members.size() && lowered.ok(); ++m)
    lowered = lower_member(*region.members[m]);
  open_.swap(around);
  region_ = nullptr;
  if (!lowered.ok()) return lowered.in("in the call '" + call.name + "' of " + called(f));
  RecursiveFunction& first = *region.members.front();
  end_function(region, first);
  return call_of(first, first.end, inside);
}

// A call that stays one.
Expected<Lowered> Inliner::invoke(const NodeDef& call, const FunctionDef& f,
                                  const std::vector<Value>& inputs, const Place& inside) {
  TROUPE_TRY(RecursiveFunction* const found, member_of(*region_, f, inputs, {}));
  RecursiveFunction& member = *found;
  TROUPE_TRY(const std::vector<Value> arguments, passed(call, inputs, inside));
  NodeDef node = made("", kInvokeOp, call, inside);
  node.name = inside.prefix.substr(0, inside.prefix.size() - 1);
  node.attrs.emplace("function", Attr(std::int64_t(member.number)));
  for (const Value& value : arguments) node.inputs.push_back(value.port);
  node.out_types = f.result_types;
  node.out_shapes = f.result_shapes;
  anchor(node, arguments, inside);
  const NodeId made_call = append(std::move(node));
  if (member.record.node != kNoNode) {
    out_.edit(made_call).out_types.push_back(DType::list);
    out_.edit(made_call).out_shapes.push_back(PartialShape::unknown());
  }
  return call_of(member, made_call, inside);
}

// What the node of a call stands for. Its record may come later.
Lowered Inliner::call_of(RecursiveFunction& member, NodeId made, const Place& inside) {
  const auto results = std::uint32_t(member.function->result_types.size());
  member.calls.push_back(made);
  frame_of_record_.emplace(made, inside.frame);
  Lowered out;
  for (std::uint32_t k = 0; k < results; ++k)
    out.outputs.push_back({{made, k}, inside.pivot, true});
  out.outputs.push_back({{made, results}, inside.pivot, true, member.run});
  if (member.effects) out.effects.push_back(made);
  out.done = {made};
  return out;
}

// A handle on a resource, which is the same in all calls that reach it, and not handed on: nothing
// in them asks for what it is of.
bool Inliner::is_bound(const Value& value) const {
  return value.run == kNoRun && is_handle(role_of(out_.graph().nodes[value.port.node], ops_));
}

Status Inliner::check_passed(const NodeDef& call, const FunctionDef& f,
                             const std::vector<Value>& inputs) const {
  if (inputs.size() != f.arguments.size())
    return in_node(invalid_argument(called(f) + " takes " + std::to_string(f.arguments.size()) +
                                    " arguments, not " + std::to_string(inputs.size())),
                   call);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = inputs[i];
    const NodeDef& argument = f.nodes[f.arguments[i]];
    if (!is_bound(value) && argument.op != kArgumentOp)
      return in_node(
          invalid_argument(called(f) + ": argument '" + argument.name + "' must be a handle"),
          call);
    if (value.run == kNoRun || member_of_run(value.run)) continue;
    return in_node(invalid_argument("what another kind of call saved is passed to " + called(f)),
                   call);
  }
  return ok_status();
}

// Placement would pass over what cannot hold for all of them.
Status Inliner::check_device(const NodeDef& node) {
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

// `passed`: by the call from outside, to the first one.
Expected<RecursiveFunction*> Inliner::member_of(Region& region, const FunctionDef& f,
                                                const std::vector<Value>& inputs,
                                                const std::vector<Value>& passed) {
  std::vector<std::uint32_t> handles, all;
  std::map<NodeId, Value> bound;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Value& value = inputs[i];
    if (value.run != kNoRun) handles.push_back(value.run), all.push_back(value.run);
    if (is_bound(value)) bound.emplace(f.arguments[i], value), all.push_back(value.port.node);
  }
  auto [known, fresh] = region.known.try_emplace({&f, all}, nullptr);
  if (!fresh) return known->second;
  RecursiveFunction& member = members_.emplace_back();
  known->second = &member;
  region.members.push_back(&member);
  member.function = &f;
  member.number = std::uint32_t(region.members.size()) - 1;
  member.effects = recursion_.has_effects[std::size_t(&f - functions_.data())];
  member.run = std::uint32_t(runs_.size());
  runs_.emplace_back();
  member.frame = std::uint32_t(frames_.size());
  LoopFrame& frame = frames_.emplace_back();
  frame.like = region.call;
  frame.parent = region.inside.frame;
  member_of_run_.emplace(member.run, &member);
  member_in_.emplace(member.frame, &member);
  if (!handles.empty()) {
    member.reverses = member_of_run(handles.back());
    frame.reverses = member.reverses->frame;
  }
  member.handles = std::move(handles);
  member.bound = std::move(bound);
  TROUPE_TRY(begin_function(region, member, passed));
  return &member;
}

// The last handle comes as a record.
Status Inliner::begin_function(Region& region, RecursiveFunction& member,
                               const std::vector<Value>& passed) {
  const FunctionDef& f = *member.function;
  Place body = region.inside;
  body.prefix += member.number == 0 ? "body/" : "body_" + std::to_string(member.number) + "/";
  NodeDef begin =
      made("begin", kFunctionBodyOp, region.call, member.number == 0 ? region.inside : body);
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
    anchor(begin, passed, region.inside);
  else
    begin.control = {region.members.front()->begin};
  member.begin = append(std::move(begin));
  frame_of_record_.emplace(member.begin, member.frame);
  if (member.number == 0) region.inside.loop = out_.graph().nodes[member.begin].name;
  body.loop = region.inside.loop;
  body.pivot = member.begin;
  body.frame = member.frame;
  body.control.clear();
  body.constants = nullptr;
  member.body = member.inside = body;
  member.inside.prefix += "saved/";
  return ok_status();
}

Status Inliner::lower_member(RecursiveFunction& member) {
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
  auto inlined = inline_function(f, arguments, member.body);
  if (!inlined.ok()) return inlined.status().in("in " + called(f));
  runs_[member.run].push_back(std::move(inlined).value());
  if (member.number != 0) end_function(*region_, member);
  return ok_status();
}

// That of the one called from outside is the end of all.
void Inliner::end_function(Region& region, RecursiveFunction& member) {
  const FunctionDef& f = *member.function;
  const Inlined& body = runs_[member.run].front();
  NodeDef end = made("return", kFunctionReturnOp, region.call,
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
  const bool records = member.record.node != kNoNode;
  if (records) end.inputs.push_back(member.record);
  if (records && member.number == 0) {
    end.out_types.push_back(DType::list);
    end.out_shapes.push_back(PartialShape::unknown());
  }
  member.end = append(std::move(end));
}

}  // namespace troupe::detail
