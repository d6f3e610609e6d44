// Shapes that were inferred from values which a run is fed in place of.
#pragma once

#include "graph/passes/pass.hpp"

namespace troupe {

// Puts an _EnsureShape behind each output whose shape was inferred from the value of a port that is
// fed, such as that of a Reshape whose constant list is fed: the run fails there, with that node
// and its line, unless the shape is what the graph was built on. The part of the first stage that
// comes last: fed ports are feed nodes. Nodes inside of functions know no such values.
Status ensure_fed_shapes(StepGraph& step, const OpRegistry& ops);

}  // namespace troupe
