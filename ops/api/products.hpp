// Products of vectors and tensors under NumPy's names, made of einsum. Floating dtypes.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/builder.hpp"

namespace troupe {

// The sum of the products of two vectors.
Output dot(Output a, Output b, Site site = Site::here());
// The products of each element of the vector a with each of the vector b: [a, b].
Output outer(Output a, Output b, Site site = Site::here());
// The sums of products over the last `axes` dimensions of a and the first `axes` of b, or over
// a_axes[i] of a with b_axes[i] of b. The result has the other dimensions of a, and then those of
// b. The ranks must be known. Throws Error for axes that do not fit.
Output tensordot(Output a, Output b, std::int64_t axes, Site site = Site::here());
Output tensordot(Output a, Output b, const std::vector<std::int64_t>& a_axes,
                 const std::vector<std::int64_t>& b_axes, Site site = Site::here());

}  // namespace troupe
