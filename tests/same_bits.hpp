// Several tensors compared at once.
#pragma once

#include <algorithm>
#include <vector>

#include "core/tensor.hpp"

namespace troupe::test {

inline bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), Tensor::same);
}

}  // namespace troupe::test
