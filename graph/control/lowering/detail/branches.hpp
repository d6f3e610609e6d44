// The Switches and Merges around the branches of an If or a Case.
#pragma once

#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "graph/control/lowering/detail/step_writer.hpp"

namespace troupe::detail {

// One node for each branch, which is dead if the branch is not taken.
using Pivots = std::vector<NodeId>;

// Makes the nodes that lead into branches and out of them; the Inliner makes those in them. `place`
// is the place of the call, `inside` that of its nodes. Lives for one pass over a step, as long as
// the StepWriter.
class Branches {
 public:
  explicit Branches(StepWriter& out) : out_(out) {}

  // The pivots of a call. Calls with the same selector at the same place share them: so values of a
  // branch of an If are live in the same branch of its gradient.
  Pivots pivots(const NodeDef& call, const Value& selector, std::size_t branches,
                const Place& place, const Place& inside);
  // The value for each branch. Handles and constants need no Switch.
  std::vector<Value> switched(const NodeDef& call, const Value& x, const Value& selector,
                              const Pivots& pivots, const Place& place, const Place& inside);
  // Adds the results of the call to `out`: each is a Merge of the branches' results.
  void merge_results(const NodeDef& call, const std::vector<Inlined>& branches,
                     const Pivots& pivots, const Place& inside, Lowered& out);
  // A Merge after all effects of the taken branch.
  NodeId merge_done(const NodeDef& call, const std::vector<Inlined>& branches, const Pivots& pivots,
                    const Place& inside);
  // A Merge that is not in the step yet.
  NodeDef make_merge(const NodeDef& call, std::string_view name, std::vector<Port> inputs,
                     DType dtype, PartialShape shape, const Place& inside) const;

 private:
  NodeDef make_switch(const NodeDef& call, std::string_view name, const Value& x,
                      const Value& selector, std::size_t branches, const Place& inside) const;

  StepWriter& out_;
  // By selector, outer pivot and number of branches.
  std::map<std::tuple<Port, NodeId, std::size_t>, Pivots> pivots_;
};

}  // namespace troupe::detail
