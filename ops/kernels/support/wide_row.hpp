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
  // Of rows of up to `most` elements.
  explicit WideRow(std::int64_t most)
      : most_(most), wide_(std::is_same_v<C, T> ? 0 : std::size_t(most)) {}
  const C* operator()(const T* x) { return (*this)(x, most_); }
  const C* operator()(const T* x, std::int64_t n) {
    if constexpr (std::is_same_v<C, T>) {
      return x;
    } else {
      std::copy_n(x, n, wide_.data());
      return wide_.data();
    }
  }

 private:
  std::int64_t most_;
  std::vector<C> wide_;
};

}  // namespace troupe
