// The order of elements, of whatever type: as numbers that compare as the elements do, so that what
// sorts and searches is compiled once.
#pragma once

#include <cstdint>
#include <vector>

#include "core/tensor.hpp"

namespace troupe {

// An element and where it stands. Equal elements follow each other by their place, so that an order
// is never a matter of taste.
struct Ranked {
  std::uint64_t key = 0;
  std::int64_t at = 0;
  friend bool operator<(const Ranked& a, const Ranked& b) {
    return a.key != b.key ? a.key < b.key : a.at < b.at;
  }
};

// Elements `first`, `first + step`, ... of x, which is of numbers or bool, ascending by key. -0 and
// 0 are equal; a NaN is above all numbers and equals any other, as NumPy sorts. With `descending`
// the largest element has the lowest key.
void rank_elements(const Tensor& x, std::int64_t first, std::int64_t step, bool descending,
                   std::vector<Ranked>& out);

}  // namespace troupe
