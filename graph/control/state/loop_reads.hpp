// Reads of variables that are invariant in a loop.
#pragma once

#include <vector>

#include "graph/control/functions/body.hpp"

namespace troupe {

// For the condition and the body of a loop that comes after `before`: moves reads of variables
// before the loop if neither of the two writes the variable and no write comes before the read.
// Both then take the value as an argument. REQUIRES: they have their results, and are not finished.
Status read_before_loop(const std::vector<Body*>& loop, const std::vector<Op>& before);

}  // namespace troupe
