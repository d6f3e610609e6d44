// Gradients that are zero but for a part, such as that of a gather: they are added to a sum in
// place rather than made in full.
#pragma once

#include <string>

#include "graph/builder.hpp"

namespace troupe::detail {

// The name of the op that adds this gradient to a sum (OpDef::added); "" if the gradient is not of
// that kind.
std::string op_that_adds(const Output& gradient);
// The node sum + gradient, in the dtype of the sum. REQUIRES: op_that_adds() names an op.
NodeSpec added_to(const Output& sum, const Output& gradient);

}  // namespace troupe::detail
