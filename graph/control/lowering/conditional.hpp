// What a Switch may leave dead.
#pragma once

#include <string_view>
#include <vector>

#include "graph/node_query.hpp"

namespace troupe {

// Attribute that lowering leaves on the Merges of an If or Case inside of a branch: where the
// branch is not taken, they are dead.
inline constexpr std::string_view kConditionalAttr = "_conditional";

// By node, whether it may be dead. A Switch is when its inputs may be; what reads it always may. A
// Merge brings its branches together, so it is not, unless lowering says so.
std::vector<bool> find_conditional(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// By node, whether any of its outputs may be: a Switch has one that is dead, always.
std::vector<bool> find_dying(const std::vector<NodeDef>& nodes, const OpRegistry& ops);
// The same, where a Merge of branches that may all be dead counts as dead, too: it errs to that
// side.
std::vector<bool> find_ever_dead(const std::vector<NodeDef>& nodes, const OpRegistry& ops);

}  // namespace troupe
