// Gradients of Call, If, Case and While: nodes of the same kind, with gradient functions.
//
//   y = If(p, x) {f, g}       dx = If(p, y:saved, x, dy) {f_grad, g_grad}
//
// A gradient function does not recompute values of its function: it names them (Saved), and
// lowering, which inlines both, connects them under the same predicate. Existing nodes are not
// changed.
//
// Gradients of gradients start from a function and its gradient functions in one body, the tape,
// where they are ordinary nodes; the new nodes there become the next gradient function. So its
// calls take the handles of all layers.
//
// The gradient of a loop is a loop over the same iterations in reverse order. The values that it
// needs from the body are lists with one element for each iteration, which it pops. Its loop
// variables are the number of iterations left, the gradients of the loop's variables, the sums of
// the gradients of its invariants, and those lists.
//
//   y = While(x, w) {a -> tanh(a * w)}
//   as = SavedList(y:saved, "a")    dx, dw, ... = While(SavedTrips(y:saved), dy, zeros, as, ...)
//
// The gradient of a Call of a recursive function is a Call of a recursive gradient function: it is
// declared before its body is made, with gradients of all arguments that can have one, and made
// once. Lowering passes it the values that it names as a list
// (graph/control/lowering/detail/call_records.hpp).
//
// These are ordinary nodes: the gradient of the second loop is a third loop, and its gradient of
// `as` is a list, which SavedList passes to the gradient of the first loop as that value's
// gradient. Values that are equal in all iterations are not saved.
#pragma once

#include <vector>

#include "graph/gradients.hpp"

namespace troupe {

// The GradFn of ops of role `call`. `dy` may be empty for outputs without a gradient.
std::vector<Output> call_gradient(GradContext& c);
// The GradFn of While.
std::vector<Output> loop_gradient(GradContext& c);

// resource_exhausted, naming the call, if its gradient would take more nodes than there is time
// for: a gradient function is made for each call in a function, and so for each way to get there.
Status check_gradient_size(GraphBuilder& root, const NodeDef& call);

}  // namespace troupe
