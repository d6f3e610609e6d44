// Which runs take elements of queues.
#pragma once

#include <vector>

#include "graph/builder.hpp"

namespace troupe {

// Whether a step of these nodes, and of what they need, may take elements of a queue or of another
// resource that is no variable: at once with another such run, what each gets depends on which was
// first. A function with such a node counts for each step that calls any function.
bool takes_elements(const GraphBuilder& graph, std::vector<NodeId> nodes);

}  // namespace troupe
