// The gradient of a node that other nodes can stand for.
#pragma once

#include <vector>

#include "core/function_ref.hpp"
#include "graph/gradients.hpp"

namespace troupe {

// For gradient functions: `outputs_of` makes the node's outputs from its inputs, and what it makes
// is differentiated for them. Each input has a gradient of its own, also where two inputs are one
// tensor. gradients(ys, c.x, c.dy, c.x) would give both the whole gradient of that tensor, and it
// would count twice. Throws Error.
std::vector<Output> gradient_through(
    GradContext& c, FunctionRef<std::vector<Output>(const std::vector<Output>&)> outputs_of);

}  // namespace troupe
