// Of lowering: values of a loop's iterations on their way to the loop that goes back over them.
//
//   loop          _LoopBody -> ... value ... ListPush -> _LoopNext --- list
//                                                                       |
//   its reverse   _LoopBody -> ListPop -> value ... -> _LoopNext <------'
//
// Such a list is one more variable of both loops. Where the value is on a branch, _Keep and _Kept
// stand in the places of ListPush and ListPop. What is the same in each iteration comes from where
// the loop has it from.
#include <algorithm>

#include "graph/control/lowering/detail/inline.hpp"
#include "graph/detail/node_check.hpp"

namespace troupe::detail {
namespace {

Status too_many(const NodeDef& call) {
  return in_node(resource_exhausted("a loop over more than " + std::to_string(kMaxPorts) +
                                    " values, with those that its gradients need"),
                 call);
}

NodeDef typed(NodeDef node, DType element) {
  node.attrs.emplace("T", Attr(element));
  return node;
}

}  // namespace

// --- the way ---

bool Inliner::is_around(std::uint32_t outer, std::uint32_t inner) const {
  while (inner > outer) inner = frames_[inner].parent;
  return inner == outer;
}

bool Inliner::is_invariant(const LoopFrame& frame, Port port) const {
  return frame.begin != kNoNode && port.node == frame.begin && port.index >= frame.variables &&
         std::none_of(frame.added.begin(), frame.added.end(),
                      [&](const LoopFrame::Added& a) { return a.output == port.index; });
}

// Frames from `to` to `from`, each of which goes back over the next; empty when there is no way.
std::vector<std::uint32_t> Inliner::way_back(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> way{to};
  while (way.back() > from) way.push_back(frames_[way.back()].reverses);
  return way.back() == from ? way : std::vector<std::uint32_t>{};
}

// A value of an iteration of `from` as the corresponding one of `to` has it.
Expected<Value> Inliner::carry(const Value& value, std::uint32_t from, std::uint32_t to) {
  if (from == to || value.run != kNoRun ||
      is_handle(role_of(out_.graph().nodes[value.port.node], ops_)))
    return value;
  if (is_around(from, to)) {
    if (const RecursiveFunction* function = member_in(to))
      return in_node(
          unimplemented("a value from around it is asked for in " + called(*function->function)),
          frames_[to].like);
    TROUPE_TRY(Value around, carry(value, from, frames_[to].parent));
    return enter_loop(frames_[to], around);
  }
  if (const LoopFrame& source = frames_[from]; is_invariant(source, value.port))
    return carry(source.passed[value.port.index], source.parent, to);
  for (std::uint32_t through = to; through != 0; through = frames_[through].parent) {
    const std::vector<std::uint32_t> way = way_back(from, through);
    if (way.empty()) continue;
    Value at = value;
    for (std::size_t i = way.size() - 1; i > 0; --i) {
      TROUPE_TRY(at, carry_over(at, way[i], way[i - 1]));
    }
    return carry(at, through, to);
  }
  return in_node(invalid_argument("a value of an iteration is asked for outside of its loop"),
                 frames_[from].like);
}

// From a loop to one that goes back over it.
Expected<Value> Inliner::carry_over(const Value& value, std::uint32_t from, std::uint32_t to) {
  if (RecursiveFunction* function = member_in(to)) return recall(*function, value);
  LoopFrame &source = frames_[from], &reverse = frames_[to];
  if (is_invariant(source, value.port))
    return carry(source.passed[value.port.index], source.parent, to);
  TROUPE_TRY(Value list, keep(source, value));
  TROUPE_TRY(list, carry(list, source.parent, reverse.parent));
  return take(reverse, list, value, value.pivot != source.begin);
}

// --- lists ---

// The list of the values that its iterations had, behind the loop.
Expected<Value> Inliner::keep(LoopFrame& frame, const Value& value) {
  if (auto at = frame.kept.find(value.port); at != frame.kept.end()) return at->second;
  if (frame.next == kNoNode)
    return in_node(invalid_argument("a loop is asked for its values before it is over"),
                   frame.like);
  const NodeDef& source = out_.graph().nodes[value.port.node];
  const DType element = source.out_types[value.port.index];
  const PartialShape shape = source.out_shapes[value.port.index];
  NodeDef empty = typed(made("empty", "ListEmpty", frame.like, frame.around), element);
  empty.attrs.emplace("shape", Attr(shape));
  empty.out_types = {DType::list};
  empty.out_shapes = {shape};
  empty.colocate.push_back(out_.graph().nodes[frame.begin].name);
  stay_with(empty, value.port);
  TROUPE_TRY(Value list, add_variable(frame, before_loop(frame, std::move(empty))));
  const bool always = value.pivot == frame.begin;
  NodeDef push =
      typed(made("push", always ? "ListPush" : kKeepOp, frame.like, frame.inside), element);
  push.inputs = {list.port, value.port};
  stay_with(push, value.port);
  push.out_types = {DType::list};
  push.out_shapes = {shape};
  const Value kept = set_next(frame, {{append(std::move(push)), 0}});
  frame.kept.emplace(value.port, kept);
  return kept;
}

// Who makes a value that loops hand on.
Port Inliner::maker_of(Port value) const {
  const auto& nodes = out_.graph().nodes;
  while (nodes[value.node].op == kLoopNextOp || nodes[value.node].op == kLoopBodyOp)
    value = nodes[value.node].inputs[value.index + 1];
  return value;
}

// A list of values is where these are made: unless their maker names no device, beside the loop.
void Inliner::stay_with(NodeDef& node, Port value) const {
  const NodeDef& maker = out_.graph().nodes[maker_of(value).node];
  if (maker.op == kFeedOp || maker.device.empty()) return;
  node.device = maker.device;
  node.colocate.clear();
}

// The element of a list that an iteration takes off its end.
Expected<Value> Inliner::take(LoopFrame& frame, const Value& list, const Value& kept,
                              bool may_lack) {
  if (auto at = frame.taken.find(list.port); at != frame.taken.end()) return at->second;
  const NodeDef& source = out_.graph().nodes[kept.port.node];
  const DType element = source.out_types[kept.port.index];
  const PartialShape shape = source.out_shapes[kept.port.index];
  TROUPE_TRY(Value variable, add_variable(frame, list));
  NodeDef pop =
      typed(made("pop", may_lack ? kKeptOp : "ListPop", frame.like, frame.inside), element);
  pop.attrs.emplace("shape", Attr(shape));
  pop.inputs = {variable.port};
  pop.device.clear();  // that of the list
  pop.colocate.clear();
  pop.out_types = {DType::list, element};
  pop.out_shapes = {shape, shape};
  const NodeId made_pop = append(std::move(pop));
  set_next(frame, {{made_pop, 0}});
  const Value value{{made_pop, 1}, may_lack ? kNoNode : frame.begin, true};
  frame.taken.emplace(list.port, value);
  return value;
}

Expected<Value> Inliner::enter_loop(LoopFrame& frame, const Value& value) {
  if (auto at = frame.entered.find(value.port); at != frame.entered.end()) return at->second;
  TROUPE_TRY(Value entered, add_input(frame, value));
  frame.entered.emplace(value.port, entered);
  return entered;
}

// How many iterations there were, behind the loop.
Expected<Value> Inliner::trips(LoopFrame& frame) {
  if (frame.trips.port.node != kNoNode) return frame.trips;
  if (frame.next == kNoNode)
    return in_node(invalid_argument("a loop is asked for its iterations before it is over"),
                   frame.like);
  auto constant = [&](const char* name, std::int64_t value) {
    NodeDef node = typed(made(name, "Const", frame.like, frame.around), DType::i64);
    node.attrs.emplace("value", Attr(Tensor::scalar(value)));
    node.out_types = {DType::i64};
    node.out_shapes = {PartialShape::scalar()};
    node.colocate.push_back(out_.graph().nodes[frame.begin].name);
    return before_loop(frame, std::move(node));
  };
  TROUPE_TRY(Value one, enter_loop(frame, constant("one", 1)));
  TROUPE_TRY(Value before, add_variable(frame, constant("zero", 0)));
  NodeDef count = typed(made("count", "Add", frame.like, frame.inside), DType::i64);
  count.inputs = {before.port, one.port};
  count.out_types = {DType::i64};
  count.out_shapes = {PartialShape::scalar()};
  return frame.trips = set_next(frame, {{append(std::move(count)), 0}});
}

// --- what a loop takes and gives ---

Expected<Value> Inliner::add_input(LoopFrame& frame, const Value& value) {
  NodeDef& begin = out_.edit(frame.begin);
  if (begin.inputs.size() >= kMaxPorts) return too_many(frame.like);
  const NodeDef& source = out_.graph().nodes[value.port.node];
  const auto output = std::uint32_t(begin.out_types.size());
  begin.inputs.push_back(value.port);
  begin.out_types.push_back(source.out_types[value.port.index]);
  begin.out_shapes.push_back(source.out_shapes[value.port.index]);
  frame.passed.push_back(value);
  return Value{{frame.begin, output}, frame.begin, true};
}

Expected<Value> Inliner::add_variable(LoopFrame& frame, const Value& first) {
  TROUPE_TRY(Value variable, add_input(frame, first));
  frame.added.push_back({variable.port.index, {}});
  return variable;
}

// Of the variable added last. The value that it has behind the loop, if that has an end already.
Value Inliner::set_next(LoopFrame& frame, const Value& next) {
  frame.added.back().next = next.port;
  if (frame.next == kNoNode) return {};
  add_to_next(frame, next.port);
  const auto output = std::uint32_t(out_.graph().nodes[frame.next].out_types.size()) - 1;
  return Value{{frame.next, output}, frame.around.pivot, true};
}

void Inliner::add_to_next(LoopFrame& frame, Port next) {
  NodeDef& end = out_.edit(frame.next);
  const NodeDef& source = out_.graph().nodes[next.node];
  end.inputs.push_back(next);
  end.out_types.push_back(source.out_types[next.index]);
  end.out_shapes.push_back(source.out_shapes[next.index]);
}

// A node that takes nothing, among those around the loop.
Value Inliner::before_loop(LoopFrame& frame, NodeDef node) {
  const bool free = frame.around.frame == 0;
  if (!free) anchor(node, {}, frame.around);
  const NodeId made = append(std::move(node));
  return {{made, 0}, free ? kNoNode : frame.around.pivot, !free};
}

// Variables come before invariants.
Inliner::Moved Inliner::settle_variables() {
  Moved moved;
  for (const LoopFrame& frame : frames_) {
    if (frame.begin == kNoNode || frame.passed.size() == frame.first_passed) continue;
    std::vector<std::uint32_t> order;
    auto take = [&](bool variables) {
      for (std::uint32_t k = 0; k < frame.passed.size(); ++k)
        if (variables == !(k >= frame.variables && is_invariant(frame, {frame.begin, k})))
          order.push_back(k);
    };
    take(true);
    take(false);
    NodeDef& begin = out_.edit(frame.begin);
    const NodeDef before = begin;
    std::vector<std::uint32_t>& now = moved[frame.begin];
    now.resize(order.size());
    for (std::uint32_t k = 0; k < order.size(); ++k) {
      now[order[k]] = k;
      begin.inputs[k + 1] = before.inputs[order[k] + 1];
      begin.out_types[k] = before.out_types[order[k]];
      begin.out_shapes[k] = before.out_shapes[order[k]];
    }
  }
  return moved;
}

}  // namespace troupe::detail
