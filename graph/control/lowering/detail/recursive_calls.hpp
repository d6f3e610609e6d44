// Lowering of functions that are not inlined (graph/control/functions/recursion.hpp).
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "core/function_ref.hpp"
#include "graph/control/lowering/detail/budget.hpp"
#include "graph/control/lowering/detail/saved_values.hpp"
#include "graph/control/lowering/detail/shape_checks.hpp"

namespace troupe::detail {

// Makes the nodes around functions that stay functions: _FunctionBody, _Invoke, _FunctionReturn.
// The functions that a call from outside may reach are its region, which is on one device. One
// region is lowered at a time. Lives for one pass over a step.
class RecursiveCalls {
 public:
  RecursiveCalls(const FunctionTable& functions, const Budget& budget, StepWriter& out,
                 Loops& loops, CallRecords& records, SavedValues& saved, ShapeChecks& shapes)
      : functions_(functions),
        budget_(budget),
        out_(out),
        loops_(loops),
        records_(records),
        saved_(saved),
        shapes_(shapes) {}

  // Whether a call of the function with these inputs stays a call: the function is recursive, too
  // large to inline, or the gradient of one that stays.
  bool stays(const FunctionDef& f, const std::vector<Value>& inputs) const;
  // Whether a region is being lowered.
  bool is_inside() const { return region_ != nullptr; }
  // Adds a node's device constraint to the region's. unimplemented, naming the node, if they
  // contradict each other. REQUIRES: is_inside().
  Status check_device(const NodeDef& node);

  // Inlines a function at a place.
  using InlineBody =
      FunctionRef<Expected<Inlined>(const FunctionDef&, const std::vector<Value>&, const Place&)>;
  // Lowers a call of a function that stays. If it is from outside, lowers all functions that it
  // reaches, with `inline_body`.
  Expected<Lowered> lower(const NodeDef& call, const FunctionDef& f, std::vector<Value> inputs,
                          const Place& inside, InlineBody inline_body);

 private:
  // The functions that a call from outside may reach.
  struct Region {
    NodeDef call;
    Place inside;       // of the nodes
    DeviceName device;  // the common constraint of its nodes
    std::vector<RecursiveFunction*> members;
    // By function and handles passed to it.
    std::map<std::pair<const FunctionDef*, std::vector<std::uint32_t>>, RecursiveFunction*> known;
  };
  Expected<Lowered> invoke(const NodeDef& call, const FunctionDef& f,
                           const std::vector<Value>& inputs, const Place& inside);
  Lowered call_of(RecursiveFunction& member, NodeId made, const Place& inside);
  Expected<RecursiveFunction*> member_of(Region& region, const FunctionDef& f,
                                         const std::vector<Value>& inputs,
                                         const std::vector<Value>& passed);
  Status begin_function(Region& region, RecursiveFunction& member,
                        const std::vector<Value>& passed);
  Status lower_member(RecursiveFunction& member, InlineBody inline_body);
  void end_function(Region& region, RecursiveFunction& member);
  Status check_passed(const NodeDef& call, const FunctionDef& f,
                      const std::vector<Value>& inputs) const;
  Expected<std::vector<Value>> passed(const NodeDef& call, const std::vector<Value>& inputs,
                                      const Place& inside);

  const FunctionTable& functions_;
  const Budget& budget_;
  StepWriter& out_;
  Loops& loops_;
  CallRecords& records_;
  SavedValues& saved_;
  ShapeChecks& shapes_;
  Region* region_ = nullptr;  // the one being lowered
};

}  // namespace troupe::detail
