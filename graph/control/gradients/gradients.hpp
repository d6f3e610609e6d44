// Gradients of Call, If, Case and While: nodes of the same kind, with gradient functions.
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
//
// The gradient of a loop is a loop that goes backwards through the same number of iterations. What
// it needs of the body's values comes to it as lists, one element for each iteration, which it
// takes apart from their ends: its variables are the number of iterations to go, the gradients of
// the loop's variables, the sums of the gradients of its invariants, and those lists.
//
//   y = While(x, w) {a -> tanh(a * w)}
//   as = SavedList(y:saved, "a")        dx, dw, ... = While(SavedTrips(y:saved), dy, zeros, as,
//   ...)
//
// The gradient of a Call of a function that calls itself is a Call of a gradient function that
// does, too: it is declared before it is made, with gradients of all arguments that can have one,
// and made once. Lowering hands it what it names of a call as a list
// (graph/control/lowering/detail/call_records.hpp).
//
// These are ordinary nodes: the gradient of the second loop is another one, and its gradient of
// `as` is a list that the gradient of the first loop is given, by SavedList, as of that value. What
// is the same in each iteration is not saved.
#pragma once

#include <vector>

#include "graph/gradients.hpp"

namespace troupe {

// The GradFn of ops of role `call`. `dy` of outputs that none came for may be empty.
std::vector<Output> call_gradient(GradContext& c);
// The GradFn of While.
std::vector<Output> loop_gradient(GradContext& c);

}  // namespace troupe
