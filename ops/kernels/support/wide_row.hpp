// A row as what it is computed in: where it is, or widened.
#pragma once

#include <algorithm>
#include <vector>

#include "ops/kernels/support/types.hpp"

namespace troupe {

// Owned by one thread; what a call returns is valid until the next one.
template <class T>
class WideRow {
 public:
  using C = Compute<T>;
  const C* operator()(const T* x, std::int64_t n) {
    if constexpr (std::is_same_v<C, T>) {
      return x;
    } else {
      if (std::int64_t(wide_.size()) < n) wide_.resize(std::size_t(n));
      std::copy_n(x, n, wide_.data());
      return wide_.data();
    }
  }

 private:
  std::vector<C> wide_;
};

}  // namespace troupe
