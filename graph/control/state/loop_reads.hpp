// Reads of variables that are the same in each iteration of a loop.
#pragma once

#include <vector>

#include "graph/control/functions/body.hpp"

namespace troupe {

// Of the condition and the body of a loop that comes after `before`: makes the reads of variables
// that neither of them writes, and no write comes before, once, before the loop. Both take the
// value as an argument then. REQUIRES: they have their results, and are not finished.
Status read_before_loop(const std::vector<Body*>& loop, const std::vector<Op>& before);

}  // namespace troupe
