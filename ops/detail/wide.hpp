// What the API makes of several ops is computed in f32 for f16 and bf16, and rounded once.
#pragma once

#include "ops/api/generated.hpp"

namespace troupe::detail {

using troupe::wide;
inline bool is_narrow(const Output& x) { return wide(x.dtype()) != x.dtype(); }
inline Output wide(Output x, const Site& site) {
  return is_narrow(x) ? cast(x, DType::f32, site) : x;
}
// What stands beside x, wide with it.
inline Output wide_beside(const Output& y, const Output&, const Site& site) {
  return wide(y, site);
}
inline Operand wide_beside(const Operand& y, const Output& x, const Site& site) {
  return Operand(wide(y.beside(x, site), site), site);
}
// f(x, beside...); of f16 and bf16 in f32, rounded once to the dtype of x. REQUIRES: x is not
// empty.
template <class F, class... Beside>
Output in_wide(const Site& site, F f, const Output& x, const Beside&... beside) {
  if (!is_narrow(x)) return f(x, beside...);
  return cast(f(wide(x, site), wide_beside(beside, x, site)...), x.dtype(), site);
}
// y in the dtype that was asked for.
inline Output narrow(Output y, DType dtype, const Site& site) {
  return y.dtype() == dtype ? y : cast(y, dtype, site);
}

}  // namespace troupe::detail
