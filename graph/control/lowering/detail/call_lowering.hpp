// Replaces calls by nodes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/control/lowering/detail/branches.hpp"
#include "graph/control/lowering/detail/recursive_calls.hpp"

namespace troupe::detail {

// Lowers a Call, If, Case or While: has its functions inlined, and makes the nodes around them.
// Lives for one pass over a step, as long as the parts that it is given.
class CallLowering {
 public:
  // Inlines a function at a place; calls in it return to this class.
  using InlineBody =
      std::function<Expected<Inlined>(const FunctionDef&, const std::vector<Value>&, const Place&)>;
  CallLowering(const FunctionTable& functions, Budget& budget, StepWriter& out, ShapeChecks& shapes,
               Branches& branches, Loops& loops, SavedValues& saved, RecursiveCalls& recursive,
               InlineBody inline_body)
      : functions_(functions),
        budget_(budget),
        out_(out),
        shapes_(shapes),
        branches_(branches),
        loops_(loops),
        saved_(saved),
        recursive_(recursive),
        inline_body_(std::move(inline_body)) {}

  // Lowers a call with these inputs at that place. `wants_done`: fill in `done` of the result,
  // because a node comes after the call. Errors name the enclosing calls and functions.
  Expected<Lowered> lower(const NodeDef& call, const std::vector<Value>& inputs, Place place,
                          bool wants_done);

 private:
  Expected<const FunctionDef*> enter(const std::string& name, const NodeDef& call,
                                     const Place& place);
  Expected<Lowered> lower_call(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& inside, bool wants_done);
  NodeId dies_with(NodeId pivot, NodeId done, const NodeDef& call, const Place& inside);
  Expected<Lowered> lower_recursive(const NodeDef& call, const FunctionDef& f,
                                    const std::vector<Value>& inputs, const Place& inside);
  Expected<Lowered> lower_branches(const NodeDef& call, const std::vector<Value>& inputs,
                                   const Place& place, const Place& inside, bool wants_done);
  Expected<Lowered> lower_loop(const NodeDef& call, const std::vector<Value>& inputs,
                               const Place& place, const Place& inside);
  Expected<std::uint32_t> reversed_by(const NodeDef& call, const std::vector<Value>& inputs) const;
  Expected<Inlined> inlined(const FunctionDef& f, const std::vector<Value>& arguments,
                            const Place& place);

  const FunctionTable& functions_;
  Budget& budget_;
  StepWriter& out_;
  ShapeChecks& shapes_;
  Branches& branches_;
  Loops& loops_;
  SavedValues& saved_;
  RecursiveCalls& recursive_;
  const InlineBody inline_body_;
  std::vector<const FunctionDef*> open_;  // functions being inlined, outermost first
};

}  // namespace troupe::detail
