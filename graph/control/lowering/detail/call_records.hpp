// What a call of a function that calls itself had, on its way to the call that goes back over it.
//
//   f        ListEmpty -> _Keep(value) -> _Keep(value) ... -> _FunctionReturn: results, record
//                                                                                |
//   f_grad   _FunctionBody -> record -> _Kept(value) -> _Kept(value) ...  <------'
//
// Entries are of any type; the record of a call inside is one of them, so that all records of a
// call are a tree like the calls. A value on a branch that was not taken has an empty entry.
#pragma once

#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "graph/control/lowering/detail/budget.hpp"
#include "graph/control/lowering/detail/loops.hpp"

namespace troupe::detail {

// A function that stays one, since it calls itself, or goes back over one that does. What its
// gradient needs of a call is its record: a list that the call returns behind its results.
struct RecursiveFunction {
  const FunctionDef* function = nullptr;
  std::vector<std::uint32_t> handles;  // of a gradient function: the runs that it is passed
  std::map<NodeId, Value> bound;       // handles on resources, by argument: not handed on
  std::uint32_t number = 0;            // in its region
  std::uint32_t frame = 0;
  std::uint32_t run = 0;  // what it leaves
  Place body, inside;     // of its nodes; of what is made for it
  NodeId begin = kNoNode, end = kNoNode;
  bool effects = false;
  std::vector<NodeId> calls;  // nodes whose outputs its results are
  // What it records: the list so far, and the values in it.
  Port record;
  std::vector<Port> recorded;
  std::map<Port, std::size_t> index;
  // What it recalls of the function that it goes back over: nodes, by index in the record.
  RecursiveFunction* reverses = nullptr;
  Port recalled_from;
  std::map<std::size_t, NodeId> recalled;

  bool has_record() const { return record.node != kNoNode; }
};

// Owns the functions of a step that stay functions, and makes their records. A function has a
// record once somebody asks for a value of one of its calls. Lives for one pass over a step; a
// reference to a function lives as long.
class CallRecords {
 public:
  CallRecords(StepWriter& out, const Loops& loops) : out_(out), loops_(loops) {}

  // Adds a function that leaves `run` and whose nodes are in `frame`.
  RecursiveFunction& add(const FunctionDef& f, std::uint32_t run, std::uint32_t frame);
  // nullptr if the run or the frame is not that of a function that stays.
  RecursiveFunction* of_run(std::uint32_t run) const;
  RecursiveFunction* in_frame(std::uint32_t frame) const;

  // Says that a node in `frame` has records of other calls among its outputs.
  void has_records(NodeId node, std::uint32_t frame) { frame_of_.emplace(node, frame); }
  // The frame of such a node; nullptr for any other node.
  const std::uint32_t* frame_of(NodeId node) const;

  // From now on calls of the function return a record.
  void begin(RecursiveFunction& member);
  // In a call of `member`, a value of the call that it goes back over. REQUIRES: that function has
  // a record.
  Value recall(RecursiveFunction& member, const Value& value);
  // Takes records apart in their order, once everything is lowered. Returns whether there are any;
  // resource_exhausted if they are too much for the budget.
  Expected<bool> settle(Budget& budget);

 private:
  std::size_t record(RecursiveFunction& member, const Value& value);

  StepWriter& out_;
  const Loops& loops_;
  std::deque<RecursiveFunction> members_;
  std::unordered_map<std::uint32_t, RecursiveFunction*> of_run_, in_frame_;
  std::map<NodeId, std::uint32_t> frame_of_;  // by the node that has a record
};

}  // namespace troupe::detail
