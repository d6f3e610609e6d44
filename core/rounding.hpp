// Numbers as f16 and bf16, rounded once. half(float(x)) rounds twice: a number just above the
// middle of two neighbours may become that middle first, and then go down.
#pragma once

#include <concepts>

#include "core/dtype.hpp"
#include "core/round_to_odd.hpp"

namespace troupe {

template <class T, class From>
T rounded(From x) {
  if constexpr (std::same_as<T, half> || std::same_as<T, bfloat16>)
    return T(round_to_odd(x));
  else
    return T(x);
}

}  // namespace troupe
