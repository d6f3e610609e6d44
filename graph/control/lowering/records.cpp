// Of lowering: what a call of a function that calls itself had, on its way to the call that goes
// back over it.
//
//   f        ListEmpty -> _Keep(value) -> _Keep(value) ... -> _FunctionReturn: results, record
//                                                                                |
//   f_grad   _FunctionBody -> record -> _Kept(value) -> _Kept(value) ...  <------'
//
// Entries are of any type; the record of a call inside is one of them, so that all records of a
// call are a tree like the calls. A value on a branch that was not taken has an empty entry.
#include "graph/control/lowering/detail/inline.hpp"

namespace troupe::detail {

RecursiveFunction* Inliner::member_of_run(std::uint32_t run) const {
  const auto at = member_of_run_.find(run);
  return at == member_of_run_.end() ? nullptr : at->second;
}

RecursiveFunction* Inliner::member_in(std::uint32_t frame) const {
  const auto at = member_in_.find(frame);
  return at == member_in_.end() ? nullptr : at->second;
}

// The values that a call takes along: of what calls have saved, the record of the last one, which
// has gone back over those before it.
Expected<std::vector<Value>> Inliner::passed(const NodeDef& call, const std::vector<Value>& inputs,
                                             const Place& inside) {
  std::size_t handles = 0;
  for (const Value& value : inputs) handles += value.run != kNoRun;
  std::vector<Value> out;
  for (Value value : inputs) {
    if (value.run == kNoRun) {
      if (!is_bound(value)) out.push_back(value);
      continue;
    }
    if (--handles > 0) continue;
    const auto frame = frame_of_record_.find(value.port.node);
    if (frame == frame_of_record_.end())
      return in_node(invalid_argument("it hands on what another call saved"), call);
    begin_record(*member_of_run(value.run));
    value.run = kNoRun;
    TROUPE_TRY(Value record, carry(value, frame->second, inside.frame));
    out.push_back(record);
  }
  return out;
}

// From now on its calls return one.
void Inliner::begin_record(RecursiveFunction& member) {
  if (member.record.node != kNoNode) return;
  const NodeDef& like = frames_[member.frame].like;
  NodeDef empty = made("empty", "ListEmpty", like, member.inside);
  empty.attrs.emplace("T", Attr(DType::u8));  // of no entry
  empty.attrs.emplace("shape", Attr(PartialShape::unknown()));
  empty.out_types = {DType::list};
  empty.out_shapes = {PartialShape::unknown()};
  anchor(empty, {}, member.inside);
  member.record = {append(std::move(empty)), 0};
  if (member.end != kNoNode) out_.edit(member.end).inputs.push_back(member.record);
  for (NodeId call : member.calls) {
    out_.edit(call).out_types.push_back(DType::list);
    out_.edit(call).out_shapes.push_back(PartialShape::unknown());
  }
}

std::size_t Inliner::record(RecursiveFunction& member, const Value& value) {
  if (auto at = member.index.find(value.port); at != member.index.end()) return at->second;
  const NodeDef& source = out_.graph().nodes[value.port.node];
  NodeDef push = made("push", kKeepOp, frames_[member.frame].like, member.inside);
  push.attrs.emplace("T", Attr(source.out_types[value.port.index]));
  push.inputs = {member.record, value.port};
  push.out_types = {DType::list};
  push.out_shapes = {PartialShape::unknown()};
  member.record = {append(std::move(push)), 0};
  if (member.end != kNoNode) out_.edit(member.end).inputs.back() = member.record;
  member.recorded.push_back(value.port);
  return member.index[value.port] = member.recorded.size() - 1;
}

// A value of the call that this one goes back over.
Value Inliner::recall(RecursiveFunction& member, const Value& value) {
  const std::size_t index = record(*member.reverses, value);
  auto [at, fresh] = member.recalled.try_emplace(index, kNoNode);
  if (fresh) {
    const NodeDef& source = out_.graph().nodes[value.port.node];
    const DType element = source.out_types[value.port.index];
    const PartialShape shape = source.out_shapes[value.port.index];
    NodeDef pop = made("pop", kKeptOp, frames_[member.frame].like, member.inside);
    pop.attrs.emplace("T", Attr(element));
    pop.attrs.emplace("shape", Attr(shape));
    pop.inputs = {member.recalled_from};  // until settle_records
    pop.out_types = {DType::list, element};
    pop.out_shapes = {PartialShape::unknown(), shape};
    at->second = append(std::move(pop));
  }
  return {{at->second, 1}, kNoNode, true};
}

// The last value comes off first; those that others recall go by.
Expected<bool> Inliner::settle_records() {
  bool any = false;
  for (RecursiveFunction& member : members_) {
    any = any || member.record.node != kNoNode;
    if (member.recalled.empty()) continue;
    Port rest = member.recalled_from;
    for (std::size_t index = member.reverses->recorded.size();
         index-- > member.recalled.begin()->first;) {
      TROUPE_TRY(in_budget(1, called(*member.function)));
      recall(member, {.port = member.reverses->recorded[index]});
      const NodeId pop = member.recalled.at(index);
      out_.edit(pop).inputs = {rest};
      rest = {pop, 0};
    }
  }
  return any;
}

}  // namespace troupe::detail
