// Sizes of dimensions that wrappers compute with, known before a run or not.
#pragma once

#include <string_view>

#include "graph/builder.hpp"

namespace troupe::detail {

// Dimension `axis` of x, an i64 scalar; a constant where it is known. REQUIRES: `axis` is in [0,
// rank), if the rank is known.
Output extent(const Output& x, int axis, const Site& site);

// Throws Error unless x is given and has rank `rank`: "conv1d: x has shape [2,3], not [n,w,c]".
void check_rank(std::string_view what, const Output& x, int rank, std::string_view form,
                const Site& site);

}  // namespace troupe::detail
