// Values of a recursive call, passed to the call that differentiates it.
//
//   f        ListEmpty -> _Keep(value) -> _Keep(value) ... -> _FunctionReturn: results, record
//                                                                                |
//   f_grad   _FunctionBody -> record -> _Kept(value) -> _Kept(value) ...  <------'
//
// Entries have any type. The record of an inner call is an entry, so records form a tree like the
// calls. A value on a branch that was not taken has an empty entry.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "graph/control/lowering/detail/budget.hpp"
#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// A function that is not inlined: recursive or too large, or the gradient of such a function. The
// record of a call is the list of values that its gradient needs, returned after its results.
struct RecursiveFunction {
  const FunctionDef* function = nullptr;
  std::vector<std::uint32_t> handles;  // of a gradient function: the runs passed to it
  std::map<NodeId, Value> bound;       // resource handles by argument: not passed in calls
  std::uint32_t number = 0;            // in its region
  std::uint32_t frame = 0;
  std::uint32_t run = 0;  // the run of its calls
  Place body, inside;     // of its own nodes; of nodes made for it
  NodeId begin = kNoNode, end = kNoNode;
  bool effects = false;
  std::vector<NodeId> calls;  // nodes that call it
  // Its record: the list so far, and the values in it.
  Port record;
  std::vector<Port> recorded;
  std::map<Port, std::size_t> index;
  // The values from the record of the function that it differentiates: nodes by index.
  RecursiveFunction* reverses = nullptr;
  Port recalled_from;
  std::map<std::size_t, NodeId> recalled;

  bool has_record() const { return record.node != kNoNode; }
};

// Owns the functions of a step that are not inlined, and makes their records. A function has a
// record once a value of one of its calls is requested. Lives for one pass over a step, as do
// references to functions.
class CallRecords {
 public:
  CallRecords(StepWriter& out, const Loops& loops) : out_(out), loops_(loops) {}

  // Adds a function with run `run`, whose nodes are in `frame`.
  RecursiveFunction& add(const FunctionDef& f, std::uint32_t run, std::uint32_t frame);
  // nullptr if the run or frame is not that of such a function.
  RecursiveFunction* of_run(std::uint32_t run) const;
  RecursiveFunction* in_frame(std::uint32_t frame) const;

  // Notes that a node in `frame` has records of other calls among its outputs.
  void has_records(NodeId node, std::uint32_t frame) { frame_of_.emplace(node, frame); }
  // The frame of such a node; nullptr for others.
  const std::uint32_t* frame_of(NodeId node) const;

  // Makes calls of the function return a record.
  void begin(RecursiveFunction& member);
  // In a call of `member`, a value of the call that it differentiates. REQUIRES: that function has
  // a record.
  Value recall(RecursiveFunction& member, const Value& value);
  // Orders the reads of records, once everything is lowered. Returns whether there are any records;
  // resource_exhausted if they exceed the budget.
  Expected<bool> settle(Budget& budget);

 private:
  std::size_t record(RecursiveFunction& member, const Value& value);

  StepWriter& out_;
  const Loops& loops_;
  std::deque<RecursiveFunction> members_;
  std::unordered_map<std::uint32_t, RecursiveFunction*> of_run_, in_frame_;
  std::map<NodeId, std::uint32_t> frame_of_;  // by node with a record
};

}  // namespace troupe::detail
