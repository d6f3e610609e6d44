// What is done to each of several variables with the value of another.
#pragma once

#include <string_view>
#include <vector>

#include "core/function_ref.hpp"
#include "ops/api/variable.hpp"

namespace troupe {

// A node behind write(to[i], the value of from[i] behind the ops in `after`) for all i. Throws
// Error, in the name of `what`, for lists of different lengths, empty ones, and for empty entries.
Op each_variable(std::string_view what, const std::vector<Variable>& to,
                 const std::vector<Variable>& from, const std::vector<Op>& after,
                 FunctionRef<Op(const Variable&, const Output&)> write, const Site& site);

}  // namespace troupe
