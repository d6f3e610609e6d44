// Values of lowered calls that gradient functions use.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/lowering/detail/call_records.hpp"
#include "graph/control/lowering/detail/function_table.hpp"
#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// Keeps the values of each lowered call, its run, and finds in it what nodes of role `saved` name.
// A value of an iteration is passed to the reverse loop in a list, a value of a recursive call in
// the call's record; an invariant is taken from before the loop. Lives for one pass over a step.
class SavedValues {
 public:
  SavedValues(FunctionTable& functions, StepWriter& out, Loops& loops, CallRecords& records)
      : functions_(functions), out_(out), loops_(loops), records_(records) {}

  // Adds a call's values, by branch, and returns the number of the run. For a function that is not
  // inlined it is empty until set_run().
  std::uint32_t add_run(std::vector<Inlined> branches);
  void set_run(std::uint32_t run, Inlined body);
  const std::vector<Inlined>& run(std::uint32_t run) const { return runs_[run]; }

  // The value of a node of role `saved` in `frame`. `handle`: the `saved` output of a call.
  // invalid_argument, naming the node, if the call has no such value.
  Expected<Value> find(const NodeDef& node, const Value& handle, std::uint32_t frame);
  // The loop whose `saved` output `handle` is. invalid_argument, naming the node, if it is not a
  // loop's.
  Expected<std::uint32_t> loop_of(const NodeDef& node, const Value& handle) const;
  // A value of frame `from`, for the corresponding iteration or call of frame `to`.
  // invalid_argument if `to` is neither in `from` nor reverses it.
  Expected<Value> bring(const Value& value, std::uint32_t from, std::uint32_t to);

 private:
  Expected<Value> find_value(const NodeDef& node, const Value& handle, std::uint32_t frame);
  Expected<Value> find_list(const NodeDef& node, const Value& handle, std::uint32_t frame);
  Expected<const Inlined*> body_of(const NodeDef& node, const Value& handle) const;
  Expected<Value> bring_back(const Value& value, std::uint32_t from, std::uint32_t to);

  FunctionTable& functions_;
  StepWriter& out_;
  Loops& loops_;
  CallRecords& records_;
  std::vector<std::vector<Inlined>> runs_;  // by call and branch
};

}  // namespace troupe::detail
