// Walks over an index space in which two tensors have different strides.
#pragma once

#include <array>

#include "core/shape.hpp"
#include "devices/chunks.hpp"

namespace troupe {

using Strides = std::array<std::int64_t, kMaxRank>;

// Row-major strides of a shape, in elements.
inline Strides strides_of(const Shape& shape) {
  Strides s{};
  std::int64_t step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    s[std::size_t(i)] = step;
    step *= shape.dim(i);
  }
  return s;
}

// Visits the index space `dims` as rows along the last dimension:
//   row(at_a, at_b, n) with the offsets that strides a and b give to the row's start.
// Rows are numbered from 0; only those of `rows` are visited.
template <class Row>
void strided_rows(const Shape& dims, const Strides& a, const Strides& b, Range rows, Row&& row) {
  const int last = dims.rank() - 1;
  const std::int64_t n = last < 0 ? 1 : dims.dim(last);
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t at_a = 0, at_b = 0, rest = rows.begin;
  for (int d = last - 1; d >= 0; --d) {
    const auto i = std::size_t(d);
    index[i] = rest % dims.dim(d);
    rest /= dims.dim(d);
    at_a += index[i] * a[i];
    at_b += index[i] * b[i];
  }
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    row(at_a, at_b, n);
    for (int d = last - 1; d >= 0; --d) {  // the next row: count up like an odometer
      const auto i = std::size_t(d);
      at_a += a[i];
      at_b += b[i];
      if (++index[i] < dims.dim(d)) break;
      at_a -= index[i] * a[i];
      at_b -= index[i] * b[i];
      index[i] = 0;
    }
  }
}
inline std::int64_t row_count(const Shape& dims) {
  return dims.rank() == 0 ? 1 : dims.elements(0, dims.rank() - 1);
}

}  // namespace troupe
