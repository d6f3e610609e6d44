// The nodes of a lowered While, without those of its functions.
#pragma once

#include <vector>

#include "graph/control/lowering/detail/branches.hpp"

namespace troupe::detail {

// Makes the nodes of a While besides those of its condition and body: the nodes before it, its
// _LoopBody and its _LoopNext. `arguments` are the arguments of its functions: before the loop, and
// after begin() in an iteration. Lives while the loop is lowered.
class LoopNodes {
 public:
  // `place` is the place of the call, `inside` that of its nodes.
  LoopNodes(const NodeDef& call, const FunctionDef& body, const Place& place, const Place& inside,
            StepWriter& out, Branches& branches)
      : call_(call), body_(body), place_(place), inside_(inside), out_(out), branches_(branches) {}

  // A loop variable whose first value is a handle begins as the resource's value, which is read
  // only if the predicate is true.
  void read_first_values(const Value& predicate, std::vector<Value>& arguments);
  // Makes the constants of a function once, before the loop.
  void make_constants(const FunctionDef& f, const Place& before);
  // Makes the node that begins an iteration; its inputs are in passed(). resource_exhausted, naming
  // the call, if it has too many values.
  Expected<NodeId> begin(const Value& predicate, std::vector<Value>& arguments);
  // Makes the node that ends an iteration, from the body and the condition in it.
  NodeId end(const Inlined& iteration, const Inlined& again, const Place& frame);

  // Valid in an iteration, after begin().
  const Constants& constants() const { return constants_; }
  // By output of the _LoopBody: its value before the loop.
  const std::vector<Value>& passed() const { return passed_; }

 private:
  const NodeDef& call_;
  const FunctionDef& body_;
  const Place& place_;
  const Place& inside_;
  StepWriter& out_;
  Branches& branches_;
  Constants constants_;
  std::vector<Value> passed_;
};

}  // namespace troupe::detail
