// Sizes of dimensions that wrappers compute with, known before a run or not.
#pragma once

#include <cstdint>
#include <string_view>

#include "graph/builder.hpp"

namespace troupe::detail {

// Dimension `axis` of x, an i64 scalar; a constant where it is known. REQUIRES: `axis` is in [0,
// rank), if the rank is known.
Output extent(const Output& x, int axis, const Site& site);

// Dimension `axis` of x (negative: from the end), from the beginning. Throws Error if x is empty,
// if its rank is not known, or if it has no such dimension.
int place_of(const Output& x, std::int64_t axis, std::string_view what, const Site& site);
// The size of dimension `place` of x. Throws Error if it is not known before a run.
std::int64_t known_extent(const Output& x, int place, std::string_view what, const Site& site);

// Throws Error unless x is given and has rank `rank`: "conv1d: x has shape [2,3], not [n,w,c]".
void check_rank(std::string_view what, const Output& x, int rank, std::string_view form,
                const Site& site);

}  // namespace troupe::detail
