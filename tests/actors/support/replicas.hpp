// What is counted in a step of replicas.
#pragma once

#include <functional>

#include "ops/api.hpp"

namespace troupe::test {

// `count` makes its argument by counting, in one replica for its own data: the counts of all
// replicas add up to their arguments.
void check_counts_of_replicas(const std::function<Output(Graph&, Output n)>& count);

}  // namespace troupe::test
