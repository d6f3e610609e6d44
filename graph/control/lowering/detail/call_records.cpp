#include "graph/control/lowering/detail/call_records.hpp"

namespace troupe::detail {

RecursiveFunction& CallRecords::add(const FunctionDef& f, std::uint32_t run, std::uint32_t frame) {
  RecursiveFunction& member = members_.emplace_back();
  member.function = &f;
  member.run = run;
  member.frame = frame;
  of_run_.emplace(run, &member);
  in_frame_.emplace(frame, &member);
  return member;
}

RecursiveFunction* CallRecords::of_run(std::uint32_t run) const {
  const auto at = of_run_.find(run);
  return at == of_run_.end() ? nullptr : at->second;
}

RecursiveFunction* CallRecords::in_frame(std::uint32_t frame) const {
  const auto at = in_frame_.find(frame);
  return at == in_frame_.end() ? nullptr : at->second;
}

const std::uint32_t* CallRecords::frame_of(NodeId node) const {
  const auto at = frame_of_.find(node);
  return at == frame_of_.end() ? nullptr : &at->second;
}

void CallRecords::begin(RecursiveFunction& member) {
  if (member.has_record()) return;
  NodeDef empty = out_.make("empty", "ListEmpty", loops_.like(member.frame), member.inside);
  empty.attrs.emplace("T", Attr(DType::u8));  // the list has no entries
  empty.attrs.emplace("shape", Attr(PartialShape::unknown()));
  empty.out_types = {DType::list};
  empty.out_shapes = {PartialShape::unknown()};
  out_.anchor(empty, {}, member.inside);
  member.record = {out_.append(std::move(empty)), 0};
  if (member.end != kNoNode) out_.edit(member.end).inputs.push_back(member.record);
  for (NodeId call : member.calls) {
    out_.edit(call).out_types.push_back(DType::list);
    out_.edit(call).out_shapes.push_back(PartialShape::unknown());
  }
}

std::size_t CallRecords::record(RecursiveFunction& member, const Value& value) {
  if (auto at = member.index.find(value.port); at != member.index.end()) return at->second;
  NodeDef push = out_.make("push", kKeepOp, loops_.like(member.frame), member.inside);
  push.attrs.emplace("T", Attr(out_.dtype(value.port)));
  push.inputs = {member.record, value.port};
  push.out_types = {DType::list};
  push.out_shapes = {PartialShape::unknown()};
  member.record = {out_.append(std::move(push)), 0};
  if (member.end != kNoNode) out_.edit(member.end).inputs.back() = member.record;
  member.recorded.push_back(value.port);
  return member.index[value.port] = member.recorded.size() - 1;
}

Value CallRecords::recall(RecursiveFunction& member, const Value& value) {
  const std::size_t index = record(*member.reverses, value);
  auto [at, fresh] = member.recalled.try_emplace(index, kNoNode);
  if (fresh) {
    const DType element = out_.dtype(value.port);
    const PartialShape shape = out_.shape(value.port);
    NodeDef pop = out_.make("pop", kKeptOp, loops_.like(member.frame), member.inside);
    pop.attrs.emplace("T", Attr(element));
    pop.attrs.emplace("shape", Attr(shape));
    pop.inputs = {member.recalled_from};  // until settle()
    pop.out_types = {DType::list, element};
    pop.out_shapes = {PartialShape::unknown(), shape};
    at->second = out_.append(std::move(pop));
  }
  return {{at->second, 1}, kNoNode, true};
}

// Values are popped last to first, including those that only other functions recall.
Expected<bool> CallRecords::settle(Budget& budget) {
  bool any = false;
  for (RecursiveFunction& member : members_) {
    any = any || member.has_record();
    if (member.recalled.empty()) continue;
    Port rest = member.recalled_from;
    for (std::size_t index = member.reverses->recorded.size();
         index-- > member.recalled.begin()->first;) {
      TROUPE_TRY(budget.spend(1, called(*member.function)));
      recall(member, {.port = member.reverses->recorded[index]});
      const NodeId pop = member.recalled.at(index);
      out_.edit(pop).inputs = {rest};
      rest = {pop, 0};
    }
  }
  return any;
}

}  // namespace troupe::detail
