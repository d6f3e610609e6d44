// Shapes that layers compute, of dimensions that may not be known before a run.
#pragma once

#include <vector>

#include "graph/builder.hpp"

namespace troupe::nn {

// Dimension `axis` of x (negative: from the end), an i64 scalar; a constant where it is known. The
// rank of x must be known, as for the others here: they throw Error otherwise.
Output dimension(Output x, int axis, const Site& site);
// The same where it must be known: the number itself. `what` names the dimension in the error.
std::int64_t known_dimension(Output x, int axis, std::string_view what, const Site& site);

// The elements of y in a shape that begins with the first `keep` dimensions of x and ends with
// `tail`.
Output reshape_beside(Output y, Output x, int keep, const std::vector<std::int64_t>& tail,
                      const Site& site);

// The same with all dimensions of x, whose rank need not be known.
Output reshape_beside(Output y, Output x, const std::vector<std::int64_t>& tail, const Site& site);

// x, whose last dimension is `size`: throws Error where it is known to be another, and fails the
// run where that shows only then.
Output with_last(Output x, std::int64_t size, const Site& site);

// A parameter for x: in the dtype of x where that is f16 or bf16 and the parameter is f32, so that
// networks with parameters of f32 compute in 16 bits; elsewhere the parameter itself.
Output in_dtype_of(Output parameter, Output x, const Site& site);
// The dtype that this has.
DType dtype_beside(Output parameter, Output x);

// x [..., in] times w [in, out] plus b [out], if there is one: [..., out].
Output affine(Output x, Output w, Output b, const Site& site);

}  // namespace troupe::nn
