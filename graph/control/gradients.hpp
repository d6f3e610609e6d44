// Gradients of Call, If and Case: nodes of the same kind, with gradient functions.
//
//   y = If(p, x) {f, g}       dx = If(p, y:saved, x, dy) {f_grad, g_grad}
//
// A gradient function does not compute again what its function has: it names the value (Saved), and
// lowering, which has the function in the place of the call, connects the two. Both are there under
// the same predicate. Nothing that exists is edited.
//
// Gradients of gradients start from a function and its gradient functions as one body, the tape, in
// which they are ordinary nodes; what is new there becomes the next gradient function. So its calls
// take what each of them saved.
#pragma once

#include <vector>

#include "troupe/graph/gradients.hpp"

namespace troupe {

// The GradFn of ops of role `call`. `dy` of outputs that none came for may be empty.
std::vector<Output> call_gradient(GradContext& c);

// May running `call` write the resource behind its input `input`, a handle?
bool writes_input(const GraphDef& graph, const OpRegistry& ops, const NodeDef& call,
                  std::size_t input);

}  // namespace troupe
