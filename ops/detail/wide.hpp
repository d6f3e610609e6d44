// What the API makes of several ops is computed in f32 for f16 and bf16, and rounded once.
#pragma once

#include "ops/api/generated.hpp"

namespace troupe::detail {

using troupe::wide;
inline bool is_narrow(const Output& x) { return wide(x.dtype()) != x.dtype(); }
inline Output wide(Output x, const Site& site) {
  return is_narrow(x) ? cast(x, DType::f32, site) : x;
}
// y in the dtype that was asked for.
inline Output narrow(Output y, DType dtype, const Site& site) {
  return y.dtype() == dtype ? y : cast(y, dtype, site);
}

}  // namespace troupe::detail
