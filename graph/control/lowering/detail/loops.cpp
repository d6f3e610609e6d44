#include "graph/control/lowering/detail/loops.hpp"

#include <algorithm>

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

Loops::Loops(StepWriter& out) : out_(out) { frames_.emplace_back(); }

std::uint32_t Loops::begin(Begun loop) {
  const auto number = std::uint32_t(frames_.size());
  Frame& frame = frames_.emplace_back();
  static_cast<Begun&>(frame) = std::move(loop);
  frame.first_passed = frame.passed.size();
  frame.inside.frame = number;
  return number;
}

void Loops::end(std::uint32_t loop, NodeId next) {
  Frame& frame = frames_[loop];
  frame.next = next;
  for (const Frame::Added& added : frame.added) add_to_next(frame, added.next);
}

std::uint32_t Loops::add_function(const NodeDef& like, std::uint32_t parent,
                                  std::uint32_t reverses) {
  Frame& frame = frames_.emplace_back();
  frame.like = like;
  frame.parent = parent;
  frame.reverses = reverses;
  return std::uint32_t(frames_.size()) - 1;
}

// --- the tree of frames ---

std::size_t Loops::depth(std::uint32_t frame) const {
  std::size_t depth = 0;
  for (; frame != 0; frame = frames_[frame].parent) ++depth;
  return depth;
}

bool Loops::is_around(std::uint32_t outer, std::uint32_t inner) const {
  while (inner > outer) inner = frames_[inner].parent;
  return inner == outer;
}

std::vector<std::uint32_t> Loops::way_back(std::uint32_t from, std::uint32_t to) const {
  std::vector<std::uint32_t> way{to};
  while (way.back() > from) way.push_back(frames_[way.back()].reverses);
  return way.back() == from ? way : std::vector<std::uint32_t>{};
}

const Value* Loops::before_loop(std::uint32_t loop, Port port) const {
  const Frame& frame = frames_[loop];
  return is_invariant(frame, port) ? &frame.passed[port.index] : nullptr;
}

bool Loops::is_invariant(const Frame& frame, Port port) const {
  return frame.begin != kNoNode && port.node == frame.begin && port.index >= frame.variables &&
         std::none_of(frame.added.begin(), frame.added.end(),
                      [&](const Frame::Added& a) { return a.output == port.index; });
}

// --- values of iterations ---

Expected<Value> Loops::keep(std::uint32_t loop, const Value& value) {
  Frame& frame = frames_[loop];
  if (auto at = frame.kept.find(value.port); at != frame.kept.end()) return at->second;
  if (frame.next == kNoNode)
    return in_node(invalid_argument("a loop is asked for its values before it is over"),
                   frame.like);
  const DType element = out_.dtype(value.port);
  const PartialShape shape = out_.shape(value.port);
  NodeDef empty = typed(out_.make("empty", "ListEmpty", frame.like, frame.around), element);
  empty.attrs.emplace("shape", Attr(shape));
  empty.out_types = {DType::list};
  empty.out_shapes = {shape};
  empty.colocate.push_back(out_.node(frame.begin).name);
  stay_with(empty, value.port);
  TROUPE_TRY(Value list, add_variable(frame, append_before(frame, std::move(empty))));
  const bool always = value.pivot == frame.begin;
  NodeDef push =
      typed(out_.make("push", always ? "ListPush" : kKeepOp, frame.like, frame.inside), element);
  push.inputs = {list.port, value.port};
  stay_with(push, value.port);
  push.out_types = {DType::list};
  push.out_shapes = {shape};
  const Value kept = set_next(frame, {{out_.append(std::move(push)), 0}});
  frame.kept.emplace(value.port, kept);
  return kept;
}

// Places a list with the maker of its values or, if that names no device, with the loop.
void Loops::stay_with(NodeDef& node, Port value) const {
  const NodeDef& maker = out_.node(out_.origin(value).node);
  if (maker.op == kFeedOp || maker.device.empty()) return;
  node.device = maker.device;
  node.colocate.clear();
}

Expected<Value> Loops::take(std::uint32_t loop, const Value& list, const Value& kept,
                            std::uint32_t from) {
  Frame& frame = frames_[loop];
  if (auto at = frame.taken.find(list.port); at != frame.taken.end()) return at->second;
  const bool may_lack = kept.pivot != frames_[from].begin;
  const DType element = out_.dtype(kept.port);
  const PartialShape shape = out_.shape(kept.port);
  TROUPE_TRY(Value variable, add_variable(frame, list));
  NodeDef pop =
      typed(out_.make("pop", may_lack ? kKeptOp : "ListPop", frame.like, frame.inside), element);
  pop.attrs.emplace("shape", Attr(shape));
  pop.inputs = {variable.port};
  pop.device.clear();  // placed with the list
  pop.colocate.clear();
  pop.out_types = {DType::list, element};
  pop.out_shapes = {shape, shape};
  const NodeId made = out_.append(std::move(pop));
  set_next(frame, {{made, 0}});
  const Value value{{made, 1}, may_lack ? kNoNode : frame.begin, true};
  frame.taken.emplace(list.port, value);
  return value;
}

Expected<Value> Loops::enter(std::uint32_t loop, const Value& value) {
  Frame& frame = frames_[loop];
  if (auto at = frame.entered.find(value.port); at != frame.entered.end()) return at->second;
  TROUPE_TRY(Value entered, add_input(frame, value));
  frame.entered.emplace(value.port, entered);
  return entered;
}

Expected<Value> Loops::trips(std::uint32_t loop) {
  Frame& frame = frames_[loop];
  if (frame.trips.port.node != kNoNode) return frame.trips;
  if (frame.next == kNoNode)
    return in_node(invalid_argument("a loop is asked for its iterations before it is over"),
                   frame.like);
  auto constant = [&](const char* name, std::int64_t value) {
    NodeDef node = typed(out_.make(name, "Const", frame.like, frame.around), DType::i64);
    node.attrs.emplace("value", Attr(Tensor::scalar(value)));
    node.out_types = {DType::i64};
    node.out_shapes = {PartialShape::scalar()};
    node.colocate.push_back(out_.node(frame.begin).name);
    return append_before(frame, std::move(node));
  };
  TROUPE_TRY(Value one, enter(loop, constant("one", 1)));
  TROUPE_TRY(Value before, add_variable(frame, constant("zero", 0)));
  NodeDef count = typed(out_.make("count", "Add", frame.like, frame.inside), DType::i64);
  count.inputs = {before.port, one.port};
  count.out_types = {DType::i64};
  count.out_shapes = {PartialShape::scalar()};
  return frame.trips = set_next(frame, {{out_.append(std::move(count)), 0}});
}

// --- inputs and outputs of a loop ---

Expected<Value> Loops::add_input(Frame& frame, const Value& value) {
  NodeDef& begin = out_.edit(frame.begin);
  if (begin.inputs.size() >= kMaxPorts) return too_many(frame.like);
  const auto output = std::uint32_t(begin.out_types.size());
  begin.inputs.push_back(value.port);
  begin.out_types.push_back(out_.dtype(value.port));
  begin.out_shapes.push_back(out_.shape(value.port));
  frame.passed.push_back(value);
  return Value{{frame.begin, output}, frame.begin, true};
}

Expected<Value> Loops::add_variable(Frame& frame, const Value& first) {
  TROUPE_TRY(Value variable, add_input(frame, first));
  frame.added.push_back({variable.port.index, {}});
  return variable;
}

// Sets the next value of the variable added last. Returns its value after the loop, if that has
// ended.
Value Loops::set_next(Frame& frame, const Value& next) {
  frame.added.back().next = next.port;
  if (frame.next == kNoNode) return {};
  add_to_next(frame, next.port);
  const auto output = std::uint32_t(out_.node(frame.next).out_types.size()) - 1;
  return Value{{frame.next, output}, frame.around.pivot, true};
}

void Loops::add_to_next(Frame& frame, Port next) {
  NodeDef& end = out_.edit(frame.next);
  end.inputs.push_back(next);
  end.out_types.push_back(out_.dtype(next));
  end.out_shapes.push_back(out_.shape(next));
}

// Appends a node without inputs to the frame around the loop.
Value Loops::append_before(Frame& frame, NodeDef node) {
  const bool free = frame.around.frame == 0;
  if (!free) out_.anchor(node, {}, frame.around);
  const NodeId made = out_.append(std::move(node));
  return {{made, 0}, free ? kNoNode : frame.around.pivot, !free};
}

Loops::Moved Loops::settle() {
  Moved moved;
  for (const Frame& frame : frames_) {
    if (frame.begin == kNoNode || frame.passed.size() == frame.first_passed) continue;
    std::vector<std::uint32_t> order;
    auto append = [&](bool variables) {
      for (std::uint32_t k = 0; k < frame.passed.size(); ++k)
        if (variables == !(k >= frame.variables && is_invariant(frame, {frame.begin, k})))
          order.push_back(k);
    };
    append(true);
    append(false);
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
