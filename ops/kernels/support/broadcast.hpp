// NumPy broadcasting for kernels of N inputs: which elements meet.
#pragma once

#include <array>

#include "core/shape.hpp"
#include "devices/chunks.hpp"

namespace troupe {

// The shapes of N contiguous inputs brought to one output shape. Dimensions that every input
// treats alike are merged, so that [64,28,28,3] + [3] is a matrix and a row, and equal shapes are
// one long row.
template <int N>
class Broadcast {
 public:
  static Expected<Broadcast> of(const std::array<const Shape*, N>& in) {
    Broadcast b;
    b.out_ = *in[0];
    for (int i = 1; i < N; ++i) {
      TROUPE_TRY(b.out_, troupe::broadcast(b.out_, *in[i]));
    }
    b.merge(in);
    return b;
  }
  const Shape& out() const { return out_; }
  std::int64_t elements() const { return out_.elements(); }
  // The merged dimensions, the last of which varies fastest; at least one. Strides are in elements,
  // 0 where input i does not vary.
  int rank() const { return rank_; }
  std::int64_t dim(int d) const { return dims_[std::size_t(d)]; }
  std::int64_t stride(int i, int d) const { return strides_[std::size_t(i)][std::size_t(d)]; }

  // Calls row(o, at, n, steps) for stretches that cover output elements `range` in order: n outputs
  // from offset o on, whose i-th inputs start at at[i] and advance by steps[i], 0 or 1.
  template <class Row>
  void rows(Range range, Row&& row) const {
    const std::int64_t width = dims_[rank_ - 1];
    std::array<std::int64_t, N> steps{};
    for (int i = 0; i < N; ++i) steps[i] = strides_[i][rank_ - 1];
    for (std::int64_t o = range.begin; o < range.end;) {
      std::int64_t column = o % width, rest = o / width;
      std::array<std::int64_t, N> at{};
      for (int i = 0; i < N; ++i) at[i] = column * steps[i];
      for (int d = rank_ - 2; d >= 0 && rest != 0; --d) {
        for (int i = 0; i < N; ++i) at[i] += rest % dims_[d] * strides_[i][d];
        rest /= dims_[d];
      }
      std::int64_t n = std::min(width - column, range.end - o);
      row(o, at, n, steps);
      o += n;
    }
  }

 private:
  void merge(const std::array<const Shape*, N>& in) {
    int last_kind = -1;                         // which inputs vary along the dimension before
    std::array<std::int64_t, kMaxRank> dims{};  // innermost first
    std::array<std::array<std::int64_t, kMaxRank>, N> strides{};
    std::array<std::int64_t, N> size{};
    size.fill(1);
    for (int d = 1; d <= out_.rank(); ++d) {
      const std::int64_t extent = out_.dim(out_.rank() - d);
      if (extent == 1) continue;
      int kind = 0;
      for (int i = 0; i < N; ++i)
        if (d <= in[i]->rank() && in[i]->dim(in[i]->rank() - d) != 1) kind |= 1 << i;
      if (kind == last_kind) {
        dims[rank_ - 1] *= extent;
      } else {
        dims[rank_] = extent;
        for (int i = 0; i < N; ++i) strides[i][rank_] = kind >> i & 1 ? size[i] : 0;
        ++rank_;
      }
      for (int i = 0; i < N; ++i)
        if (kind >> i & 1) size[i] *= extent;
      last_kind = kind;
    }
    if (rank_ == 0) dims[rank_++] = 1;  // one element: any step will do
    for (int d = 0; d < rank_; ++d) {
      dims_[d] = dims[rank_ - 1 - d];
      for (int i = 0; i < N; ++i) strides_[i][d] = strides[i][rank_ - 1 - d];
    }
  }

  Shape out_;
  int rank_ = 0;
  std::array<std::int64_t, kMaxRank> dims_{};
  std::array<std::array<std::int64_t, kMaxRank>, N> strides_{};
};

}  // namespace troupe
