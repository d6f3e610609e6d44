// What gradient functions share.
#pragma once

#include <vector>

#include "graph/gradients.hpp"
#include "ops/op.hpp"

namespace troupe {

// A scalar Const of that dtype.
Output scalar_const(GraphBuilder& g, DType dtype, double value);
inline Output scalar_like(Output x, double value) {
  return scalar_const(x.graph(), x.dtype(), value);
}
Output i64_const(GraphBuilder& g, const std::vector<std::int64_t>& values);

// Arithmetic on graph values, for gradients of several nodes.
inline Output plus(Output a, Output b) { return a.graph().add("Add", {a, b}); }
inline Output minus(Output a, Output b) { return a.graph().add("Sub", {a, b}); }
inline Output multiply(Output a, Output b) { return a.graph().add("Mul", {a, b}); }
inline Output wide(Output x) { return of_dtype(x, wide(x.dtype())); }
inline Output divide(Output a, Output b) { return a.graph().add("Div", {a, b}); }
inline Output negate(Output x) { return x.graph().add("Neg", {x}); }
inline Output twice(Output x) { return plus(x, x); }
// The conjugate of a complex x; a real x itself. The gradient of a holomorphic y = f(x) is
// dy * conjugate(f'(x)), which is right for real numbers, too (graph/gradients.hpp).
Output conjugate(Output x);
// a where the condition holds, else b.
inline Output where(Output condition, Output a, Output b) {
  return a.graph().add("Select", {condition, a, b});
}

// True when broadcasting `x` with `other` is known to leave x's shape as it is.
bool never_stretched(const PartialShape& x, const PartialShape& other);

// The gradient of input x of an op that broadcast it against `other`: `dy`, of the broadcast shape,
// summed over what was stretched. No node where the shapes say that nothing was.
Output unbroadcast(Output dy, Output x, Output other);

// The gradient of input x of an op whose inputs broadcast to its output y: `dy`, summed to the
// shape of x. No node where that is known to be the shape of y.
Output sum_to(Output x, Output y, Output dy);

}  // namespace troupe
