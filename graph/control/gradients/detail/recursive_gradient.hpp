// The gradient of a function that calls itself, by a function that does so, too.
//
//   y = f(x)      dx = f_grad(y:saved, x, dy)
//
// A gradient function calls itself where its function does, so what it takes and returns is settled
// before its body is there: gradients come of all results and go to all arguments that can have
// one, zeros where none flows.
#pragma once

#include <string>
#include <vector>

#include "graph/gradients.hpp"

namespace troupe {

// Whether a function of the graph calls itself, also by branches, loops and other functions.
bool calls_itself(GraphBuilder& g, const std::string& function);
// The GradFn of a Call of such a function. Throws Error, naming the call, if a gradient of a
// variable's handle is wanted.
std::vector<Output> recursive_gradient(GradContext& c);

}  // namespace troupe
