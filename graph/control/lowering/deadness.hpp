// Nodes and outputs that a Switch may leave dead.
#pragma once

#include <string_view>
#include <vector>

#include "graph/node_query.hpp"

namespace troupe {

// Attribute that lowering sets on the Merges of an If or Case inside a branch: they are dead if
// that branch is not taken.
inline constexpr std::string_view kConditionalAttr = "_conditional";

// All three results are by node, and differ in two cases. A Switch always has a dead output, but
// runs itself if its inputs are live. A Merge joins branches, so it is dead only if all of them
// are, which is possible for those with kConditionalAttr and, in a client's graph, for those of
// whose inputs all are on one side of another Switch.
//
//                               | Switch                     | Merge
//   maybe_dead_nodes            | as its inputs              | if all of its inputs may be at once
//   nodes_with_dead_outputs     | yes                        | likewise
//   maybe_dead_past_merges      | as its inputs              | as any of its inputs
//
// Whether the node may not run in a run of the step.
std::vector<bool> maybe_dead_nodes(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// Whether one of its outputs may be dead, so that readers must be prepared.
std::vector<bool> nodes_with_dead_outputs(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// Whether the node may not run, conservatively: for ordering, where a Merge could run too early.
std::vector<bool> maybe_dead_past_merges(const std::vector<NodeDef>& nodes, const OpRegistry& ops);

}  // namespace troupe
