// The sizes of attention's inputs and of its mask, for its kernels of all devices.
#pragma once

#include <string>
#include <vector>

#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace troupe {

// Of q [..., queries, size], k [..., keys, size] and v [..., keys, out], whose leading dimensions
// are equal: `count` problems of one size each.
struct AttentionSizes {
  Shape leading;
  std::int64_t count, queries, keys, size, out;

  static Expected<AttentionSizes> of(const Tensor& q, const Tensor& k, const Tensor& v) {
    const Shape &of_q = q.shape(), &of_k = k.shape(), &of_v = v.shape();
    const int rank = of_q.rank();
    bool fit = rank >= 2 && of_k.rank() == rank && of_v.rank() == rank;
    for (int d = 0; fit && d < rank - 2; ++d) fit = of_q[d] == of_k[d] && of_q[d] == of_v[d];
    fit = fit && of_q[rank - 1] == of_k[rank - 1] && of_k[rank - 2] == of_v[rank - 2];
    if (!fit)
      return invalid_argument("attention of queries " + of_q.text() + " to keys " + of_k.text() +
                              " with values " + of_v.text());
    const Shape leading(of_q.dims().first(std::size_t(rank - 2)));
    return AttentionSizes{leading,        leading.elements(), of_q[rank - 2],
                          of_k[rank - 2], of_q[rank - 1],     of_v[rank - 1]};
  }
  // [..., rows, columns]
  Expected<Shape> matrices(std::int64_t rows, std::int64_t columns) const {
    return extended({rows, columns});
  }
  // [..., queries]
  Expected<Shape> stats() const { return extended({queries}); }

 private:
  Expected<Shape> extended(std::initializer_list<std::int64_t> last) const {
    std::vector<std::int64_t> dims(leading.dims().begin(), leading.dims().end());
    dims.insert(dims.end(), last);
    return Shape::make(dims);
  }
};

// Whether those of a gradient fit: dy, y and the stats of the queries.
inline Status check_attention_outputs(const AttentionSizes& s, const Shape& dy, const Shape& y,
                                      const Shape& stats) {
  TROUPE_TRY(const Shape of_y, s.matrices(s.queries, s.out));
  TROUPE_TRY(const Shape of_stats, s.stats());
  if (dy == of_y && y == of_y && stats == of_stats) return ok_status();
  return invalid_argument("attention that gives " + of_y.text() + " has no dy " + dy.text() +
                          ", y " + y.text() + " and stats " + stats.text());
}

// Where the element of a mask is that broadcasts to [..., queries, keys], in elements: 0 along what
// it does not vary with.
struct AttentionMask {
  std::vector<std::int64_t> strides;  // of the leading dimensions
  std::int64_t row = 0, column = 0;

  static Expected<AttentionMask> of(const Shape& mask, const AttentionSizes& s) {
    TROUPE_TRY(const Shape scores, s.matrices(s.queries, s.keys));
    const int missing = scores.rank() - mask.rank();
    std::vector<std::int64_t> strides(std::size_t(scores.rank()));
    std::int64_t stride = 1;
    bool fits = missing >= 0;
    for (int d = mask.rank(); fits && d-- > 0;) {
      const std::int64_t size = mask[d];
      fits = size == 1 || size == scores[d + missing];
      if (size != 1) strides[std::size_t(d + missing)] = stride;
      stride *= size;
    }
    if (!fits)
      return invalid_argument("a mask " + mask.text() + " does not broadcast to " + scores.text());
    AttentionMask made{std::move(strides), 0, 0};
    made.column = made.strides.back(), made.strides.pop_back();
    made.row = made.strides.back(), made.strides.pop_back();
    return made;
  }
  // Of problem number i.
  std::int64_t at(std::int64_t i, const AttentionSizes& s) const {
    std::int64_t offset = 0;
    for (int d = s.leading.rank(); d-- > 0;) {
      offset += i % s.leading[d] * strides[std::size_t(d)];
      i /= s.leading[d];
    }
    return offset;
  }
};

}  // namespace troupe
