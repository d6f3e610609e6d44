// What a Switch may leave dead.
#pragma once

#include <string_view>
#include <vector>

#include "graph/node_query.hpp"

namespace troupe {

// Attribute that lowering leaves on the Merges of an If or Case inside of a branch: where the
// branch is not taken, they are dead.
inline constexpr std::string_view kConditionalAttr = "_conditional";

// All three go by node, and differ in two cases. A Switch always has a dead output, but runs itself
// where its inputs are there. A Merge brings branches together, so it is dead only where all of
// them are, which is known of those with kConditionalAttr.
//
//                               | Switch                     | Merge
//   maybe_dead_nodes            | as its inputs              | if it has kConditionalAttr
//   nodes_with_dead_outputs     | yes                        | if it has kConditionalAttr
//   maybe_dead_past_merges      | as its inputs              | as its inputs
//
// Whether the node may not run in a run of the step.
std::vector<bool> maybe_dead_nodes(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// Whether one of its outputs may be dead: what who reads them has to reckon with.
std::vector<bool> nodes_with_dead_outputs(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// Whether the node may not run, erring on that side: for order, where a Merge that waits for
// nothing more would be too early.
std::vector<bool> maybe_dead_past_merges(const std::vector<NodeDef>& nodes, const OpRegistry& ops);

}  // namespace troupe
