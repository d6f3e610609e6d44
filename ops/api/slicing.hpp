// Parts of tensors: slice(x, {2, range(1, 5), whole, newaxis}).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "troupe/graph/builder.hpp"

namespace troupe {

// One entry of a list that says which part of a tensor is meant, as between the brackets of NumPy's
// x[2, 1:5, :, None].
class Index {
 public:
  enum class Kind : std::uint8_t { one, range, newaxis, ellipsis };

  // One element; the dimension goes. Negative: from the end.
  template <std::integral T>
  Index(T at) : Index(Kind::one, std::int64_t(at), {}, 1) {}
  Index(Kind kind, std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
        std::int64_t stride)
      : kind_(kind), begin_(begin), end_(end), stride_(stride) {}

  Kind kind() const { return kind_; }
  std::optional<std::int64_t> begin() const { return begin_; }
  std::optional<std::int64_t> end() const { return end_; }
  std::int64_t stride() const { return stride_; }

 private:
  Kind kind_;
  std::optional<std::int64_t> begin_, end_;
  std::int64_t stride_;
};

// begin, begin + stride, ... before end; negative bounds count from the end, and std::nullopt is no
// bound: range(std::nullopt, std::nullopt, -1) turns a dimension around.
inline Index range(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
                   std::int64_t stride = 1) {
  return {Index::Kind::range, begin, end, stride};
}
inline const Index whole{Index::Kind::range, {}, {}, 1};        // all of a dimension
inline const Index newaxis{Index::Kind::newaxis, {}, {}, 1};    // a new dimension of size 1
inline const Index ellipsis{Index::Kind::ellipsis, {}, {}, 1};  // as many `whole` as are missing

// That part of x, of any dtype; dimensions after the last entry are taken whole. Gradients flow
// back to where the elements came from. Throws Error for more entries than dimensions, an index
// that x is known not to have, a second ellipsis and a stride of 0. See StridedSlice.
Output slice(Output x, std::initializer_list<Index> where, Site site = Site::here());

}  // namespace troupe
