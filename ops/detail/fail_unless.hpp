// Values that a run has only under a condition.
#pragma once

#include <initializer_list>
#include <string>

#include "graph/builder.hpp"

namespace troupe::detail {

// Each of `values` is itself behind one Assert of `condition`, a bool scalar, with that message: a
// run that uses one of them fails if it is false.
void fail_unless(const Output& condition, std::string message,
                 std::initializer_list<Output*> values, const Site& site);

}  // namespace troupe::detail
