// Parts of tensors: x[{2, range(1, 5), whole, newaxis}].
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>

#include "graph/builder.hpp"

namespace troupe {

// One entry of a list that says which part of a tensor is meant, as between the brackets of NumPy's
// x[2, 1:5, :, None]. An operator cannot have default arguments, so it is the first entry that
// notes the line.
class Index {
 public:
  enum class Kind : std::uint8_t { one, range, newaxis, ellipsis };

  // One element; the dimension goes. Negative: from the end.
  template <std::integral T>
  Index(T at, Site site = Site::here())
      : Index(Kind::one, std::int64_t(at), {}, 1, std::move(site)) {}
  Index(Kind kind, std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
        std::int64_t stride, Site site)
      : kind_(kind), begin_(begin), end_(end), stride_(stride), site_(std::move(site)) {}

  Kind kind() const { return kind_; }
  std::optional<std::int64_t> begin() const { return begin_; }
  std::optional<std::int64_t> end() const { return end_; }
  std::int64_t stride() const { return stride_; }
  const Site& site() const { return site_; }

 private:
  Kind kind_;
  std::optional<std::int64_t> begin_, end_;
  std::int64_t stride_;
  Site site_;
};

// Numbers of slices that are computed, and the line that asks for them: x[ids].
class ComputedIndex {
 public:
  template <std::convertible_to<Output> T>
  ComputedIndex(const T& at, Site site = Site::here()) : at_(at), site_(std::move(site)) {}

  const Output& at() const { return at_; }
  const Site& site() const { return site_; }

 private:
  Output at_;
  Site site_;
};

// begin, begin + stride, ... before end; negative bounds count from the end, and std::nullopt is no
// bound: range(std::nullopt, std::nullopt, -1) turns a dimension around.
inline Index range(std::optional<std::int64_t> begin, std::optional<std::int64_t> end,
                   std::int64_t stride = 1, Site site = Site::here()) {
  return {Index::Kind::range, begin, end, stride, std::move(site)};
}
inline const Index whole{Index::Kind::range, {}, {}, 1, {}};      // all of a dimension
inline const Index newaxis{Index::Kind::newaxis, {}, {}, 1, {}};  // a new dimension of size 1
inline const Index ellipsis{
    Index::Kind::ellipsis, {}, {}, 1, {}};  // as many `whole` as are missing

}  // namespace troupe
