// The gradient of a recursive function: a recursive function.
//
//   y = f(x)      dx = f_grad(y:saved, x, dy)
//
// A gradient function calls itself where its function does, so its signature is fixed before its
// body is made: it takes gradients of all results, and returns gradients of all arguments that can
// have one, zeros where none flows.
#pragma once

#include <string>
#include <vector>

#include "graph/gradients.hpp"

namespace troupe {

// Whether a function of the graph calls itself, also through branches, loops and other functions.
bool calls_itself(GraphBuilder& g, const std::string& function);
// The GradFn of a Call of such a function. Throws Error, naming the call, if a gradient of a
// variable's handle is requested.
std::vector<Output> recursive_gradient(GradContext& c);

}  // namespace troupe
