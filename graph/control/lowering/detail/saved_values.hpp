// What gradient functions use of the runs of the functions that they belong to.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/control/lowering/detail/call_records.hpp"
#include "graph/control/lowering/detail/function_table.hpp"
#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// Keeps what each call left when it was lowered, its run, and finds in it what nodes of role
// `saved` name. A value of an iteration goes to the loop that goes back over it in a list, one of a
// call in the record of the call, and what is the same in each iteration comes from where the loop
// has it from. Lives for one pass over a step.
class SavedValues {
 public:
  SavedValues(FunctionTable& functions, StepWriter& out, Loops& loops, CallRecords& records)
      : functions_(functions), out_(out), loops_(loops), records_(records) {}

  // Adds what a call left, by branch, and returns the number of the run. That of a function that
  // calls itself is empty until set_run().
  std::uint32_t add_run(std::vector<Inlined> branches);
  void set_run(std::uint32_t run, Inlined body);
  const std::vector<Inlined>& run(std::uint32_t run) const { return runs_[run]; }

  // What a node of role `saved` in `frame` stands for. `handle` is what a call saved.
  // invalid_argument, naming the node, if the call has no such value.
  Expected<Value> find(const NodeDef& node, const Value& handle, std::uint32_t frame);
  // The loop that left `handle`. invalid_argument, naming the node, if it was none.
  Expected<std::uint32_t> loop_of(const NodeDef& node, const Value& handle) const;
  // A value of frame `from`, as the corresponding iteration or call of frame `to` has it.
  // invalid_argument if `to` is neither in `from` nor goes back over it.
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
  std::vector<std::vector<Inlined>> runs_;  // of calls: their branches
};

}  // namespace troupe::detail
