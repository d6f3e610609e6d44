#include "graph/control/lowering/detail/call_lowering.hpp"

#include <algorithm>

#include "graph/control/functions/ops.hpp"
#include "graph/control/lowering/detail/loop_nodes.hpp"

namespace troupe::detail {
namespace {

// The deepest nesting of calls in bodies.
constexpr std::size_t kDeepest = 200;

}  // namespace

Expected<Lowered> CallLowering::lower(const NodeDef& call, const std::vector<Value>& inputs,
                                      Place place, bool wants_done) {
  Place inside = place;
  inside.prefix = place.prefix + call.name + "/";
  inside.device = call.device;
  inside.colocate = call.colocate;
  inside.replica = call.replica;
  inside.site = call.site;
  inside.depth = place.depth + 1;
  std::vector<Value> values = inputs;
  if (!call.control.empty()) {
    for (Value& v : values) v.waits = false;
    for (Place* p : {&place, &inside})
      p->control.insert(p->control.end(), call.control.begin(), call.control.end());
  }
  for (std::size_t i = 0; i < selectors(call); ++i)
    if (values[i].run != kNoRun)
      return in_node(invalid_argument("its predicate or index must be a tensor, not a handle"),
                     call);
  if (call.op == "While") return lower_loop(call, values, place, inside);
  return call.op == "Call" ? lower_call(call, values, inside, wants_done)
                           : lower_branches(call, values, place, inside, wants_done);
}

Expected<const FunctionDef*> CallLowering::enter(const std::string& name, const NodeDef& call,
                                                 const Place& place) {
  const FunctionDef* found = functions_.find(name);
  if (!found) return in_node(invalid_argument("there is no function " + quoted(name)), call);
  const FunctionDef& f = *found;
  const bool may_be_open = call.op == "Call" && recursive_.stays(f, {});
  if (!may_be_open && std::find(open_.begin(), open_.end(), &f) != open_.end())
    return in_node(unimplemented(called(f) + " calls itself" +
                                 (open_.back() == &f ? "" : ", by " + called(*open_.back())) +
                                 "; only a Call of it may do so"),
                   call);
  if (place.depth >= kDeepest)
    return in_node(resource_exhausted(called(f) + " is called in bodies of bodies, more than " +
                                      std::to_string(kDeepest) + " deep"),
                   call);
  return &f;
}

Expected<Lowered> CallLowering::lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                                           const Place& inside, bool wants_done) {
  TROUPE_TRY(const FunctionDef* f, enter(functions_of(call)[0], call, inside));
  if (recursive_.stays(*f, inputs)) return lower_recursive(call, *f, inputs, inside);
  auto body = inlined(*f, inputs, inside);
  if (!body.ok()) return body.status().in("in the call '" + call.name + "' of " + called(*f));
  Lowered out;
  out.outputs = body->results;
  out.effects = body->effects;
  if (wants_done) {
    NodeDef done = out_.make("done", "ControlTrigger", call, inside);
    done.control = body->effects;
    for (const Value& v : body->results) done.control.push_back(v.port.node);
    if (inside.pivot != kNoNode) done.control.push_back(inside.pivot);
    done.control.insert(done.control.end(), inside.control.begin(), inside.control.end());
    out.done = {dies_with(inside.pivot, out_.append(std::move(done)), call, inside)};
  }
  std::vector<Inlined> run;
  run.push_back(std::move(body).value());
  out.outputs.push_back({.run = saved_.add_run(std::move(run))});
  return out;
}

// A node after `done`, a trigger, that is dead if the pivot is: so is what comes after the call.
NodeId CallLowering::dies_with(NodeId pivot, NodeId done, const NodeDef& call,
                               const Place& inside) {
  if (pivot == kNoNode || out_.node(pivot).op == kLoopBodyOp ||
      out_.node(pivot).op == kFunctionBodyOp)
    return done;
  NodeDef node = out_.make_identity(call, "over", {pivot, 0}, inside);
  node.control = {done};
  return out_.append(std::move(node));
}

// A call from outside starts without open functions: those around it do not matter to it.
Expected<Lowered> CallLowering::lower_recursive(const NodeDef& call, const FunctionDef& f,
                                                const std::vector<Value>& inputs,
                                                const Place& inside) {
  std::vector<const FunctionDef*> around;
  const bool from_outside = !recursive_.is_inside();
  if (from_outside) open_.swap(around);
  auto lowered =
      recursive_.lower(call, f, inputs, inside,
                       [this](const FunctionDef& g, const std::vector<Value>& arguments,
                              const Place& place) { return inlined(g, arguments, place); });
  if (from_outside) open_.swap(around);
  return lowered;
}

Expected<Lowered> CallLowering::lower_branches(const NodeDef& call,
                                               const std::vector<Value>& inputs, const Place& place,
                                               const Place& inside, bool wants_done) {
  const std::vector<std::string> names = functions_of(call);
  TROUPE_TRY(budget_.spend(names.size() * (call.inputs.size() + call.out_types.size()), call.name));
  const Pivots pivots = branches_.pivots(call, inputs[0], names.size(), place, inside);
  std::vector<std::vector<Value>> arguments(names.size());  // by branch
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    const auto values = branches_.switched(call, inputs[i], inputs[0], pivots, place, inside);
    for (std::size_t b = 0; b < names.size(); ++b) arguments[b].push_back(values[b]);
  }
  std::vector<Inlined> branches;
  for (std::size_t b = 0; b < names.size(); ++b) {
    TROUPE_TRY(const FunctionDef* f, enter(names[b], call, inside));
    Place branch = inside;
    branch.prefix += call.op == "Case" ? "branch_" + std::to_string(b) + "/"
                     : b == 0          ? "else/"
                                       : "then/";
    branch.pivot = pivots[b];
    branch.control.clear();
    auto body = inlined(*f, arguments[b], branch);
    if (!body.ok()) return body.status().in("in a branch of '" + call.name + "'");
    branches.push_back(std::move(body).value());
  }
  Lowered out;
  branches_.merge_results(call, branches, pivots, inside, out);
  const bool effects = std::any_of(branches.begin(), branches.end(),
                                   [](const Inlined& in) { return !in.effects.empty(); });
  if (effects || wants_done) out.done = {branches_.merge_done(call, branches, pivots, inside)};
  if (effects) out.effects = out.done;
  out.outputs.push_back({.run = saved_.add_run(std::move(branches))});
  return out;
}

// The first predicate is computed before the loop, each later one in the iteration before.
Expected<Lowered> CallLowering::lower_loop(const NodeDef& call, const std::vector<Value>& inputs,
                                           const Place& place, const Place& inside) {
  const std::vector<std::string> names = functions_of(call);
  const std::size_t variables = loop_variables(call);
  const auto in_call = [&](const Status& s) { return s.in("in the loop '" + call.name + "'"); };
  TROUPE_TRY(const FunctionDef* cond, enter(names[0], call, inside));
  TROUPE_TRY(const FunctionDef* body, enter(names[1], call, inside));
  Place before = inside;
  before.prefix += "first/";
  std::vector<Value> arguments = inputs;
  TROUPE_TRY(shapes_.first_variables(call, *body, arguments, before));
  auto first = inlined(*cond, arguments, before);
  if (!first.ok()) return in_call(first.status());

  LoopNodes nodes(call, *body, place, inside, out_, branches_);
  nodes.read_first_values(first->results[0], arguments);
  nodes.make_constants(*cond, before);
  nodes.make_constants(*body, before);
  TROUPE_TRY(const std::uint32_t reverses, reversed_by(call, inputs));
  Place frame = inside;
  TROUPE_TRY(frame.pivot, nodes.begin(first->results[0], arguments));
  frame.loop = out_.node(frame.pivot).name;
  frame.control.clear();
  Place saved_around = inside, saved_inside = frame;
  saved_around.prefix += "saved/";
  saved_inside.prefix += "saved/";
  frame.frame = loops_.begin({.like = call,
                              .parent = place.frame,
                              .reverses = reverses,
                              .variables = std::uint32_t(variables),
                              .around = saved_around,
                              .inside = saved_inside,
                              .begin = frame.pivot,
                              .passed = nodes.passed()});
  frame.constants = &nodes.constants();
  frame.prefix = inside.prefix + "body/";
  auto iteration = inlined(*body, arguments, frame);
  if (!iteration.ok()) return in_call(iteration.status());
  TROUPE_TRY(shapes_.next_variables(call, *iteration, frame));
  std::copy(iteration->results.begin(), iteration->results.end(), arguments.begin());
  frame.prefix = inside.prefix + "cond/";
  auto again = inlined(*cond, arguments, frame);
  if (!again.ok()) return in_call(again.status());
  const NodeId end = nodes.end(*iteration, *again, frame);
  loops_.end(frame.frame, end);

  Lowered out;
  for (std::uint32_t v = 0; v < variables; ++v)
    out.outputs.push_back({{end, v}, inside.pivot, true});
  out.effects = first->effects;
  if (!iteration->effects.empty() || !again->effects.empty() || variables == 0)
    out.effects.push_back(end);
  out.done = {end};
  iteration->repeated = true;
  std::vector<Inlined> run;
  run.push_back(std::move(again).value());
  run.push_back(std::move(iteration).value());
  out.outputs.push_back({.run = saved_.add_run(std::move(run))});
  return out;
}

// The loop that this one reverses; 0: none.
Expected<std::uint32_t> CallLowering::reversed_by(const NodeDef& call,
                                                  const std::vector<Value>& inputs) const {
  const auto argument = std::size_t(*call.attrs.at("reverses").get<std::int64_t>());
  if (argument == ~std::size_t{0}) return std::uint32_t{0};
  if (argument >= inputs.size())
    return in_node(invalid_argument("it goes back over what is none of its arguments"), call);
  return saved_.loop_of(call, inputs[argument]);
}

Expected<Inlined> CallLowering::inlined(const FunctionDef& f, const std::vector<Value>& arguments,
                                        const Place& place) {
  open_.push_back(&f);
  auto body = inline_body_(f, arguments, place);
  open_.pop_back();
  return body;
}

}  // namespace troupe::detail
