// The nodes of a lowered While around those of its functions.
#pragma once

#include <vector>

#include "graph/control/lowering/detail/branches.hpp"

namespace troupe::detail {

// Makes the nodes that one While becomes, beside those of its condition and body: what comes before
// it, its _LoopBody and its _LoopNext. `arguments` are those of the call throughout: what the
// functions take before the loop, and after begin() what they take in an iteration. Lives while the
// loop is lowered.
class LoopNodes {
 public:
  // `place` is where the call stands, `inside` where its nodes go.
  LoopNodes(const NodeDef& call, const FunctionDef& body, const Place& place, const Place& inside,
            StepWriter& out, Branches& branches)
      : call_(call), body_(body), place_(place), inside_(inside), out_(out), branches_(branches) {}

  // A variable of the loop that is given a handle begins as the value behind it, which is read only
  // if the predicate says that there is an iteration.
  void read_first_values(const Value& predicate, std::vector<Value>& arguments);
  // Makes the constants of a function once, before the loop.
  void make_constants(const FunctionDef& f, const Place& before);
  // Makes the node that begins an iteration. resource_exhausted, naming the call, if it has too
  // many values. What it takes is in passed() then.
  Expected<NodeId> begin(const Value& predicate, std::vector<Value>& arguments);
  // Makes the node that ends an iteration, from the body and the condition in it.
  NodeId end(const Inlined& iteration, const Inlined& again, const Place& frame);

  // As an iteration has them, after begin().
  const Constants& constants() const { return constants_; }
  // By output of the first node: what it is before the loop.
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
