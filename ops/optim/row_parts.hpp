// Gradients of tables of which a loss gathers rows.
#pragma once

#include <vector>

#include "graph/builder.hpp"

namespace troupe::optim {

// Rows of a gradient that is 0 elsewhere, along dimension 0. Rows of one index add up.
struct RowPart {
  Output indices;  // i32 or i64
  Output rows;     // [indices..., ...]
  Output factor;   // a scalar of their dtype; empty: 1
};

// The rows of which the gradient is the sum, in their order. Empty: something else is in it. With
// `scaled`, also those of a gradient that was multiplied or divided by scalars, or that
// over_replicas() made: if a rule takes these rows of each replica, its update is of their mean.
std::vector<RowPart> row_parts(const Output& gradient, bool scaled);

}  // namespace troupe::optim
