// Shapes: of tensors (every dimension known) and of graph edges (some or all unknown).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"

namespace troupe {

inline constexpr int kMaxRank = 8;

// The shape of a tensor: rank 0 (a scalar) to 8, every dimension >= 0, and an element count that
// fits 63 bits. A value; 72 bytes, no allocation. Dimensions from outside go through `make`.
class Shape {
 public:
  Shape() = default;  // scalar
  // REQUIRES: what `make` checks. For literals and for dimensions already checked.
  Shape(std::initializer_list<std::int64_t> dims);
  explicit Shape(std::span<const std::int64_t> dims);

  // invalid_argument for rank > 8, a negative dimension, or a product past 2^63 - 1 (zeros left
  // out, so that no partial product overflows either).
  static Expected<Shape> make(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  std::int64_t dim(int i) const { return dims_[i]; }
  std::int64_t operator[](int i) const { return dims_[i]; }
  std::span<const std::int64_t> dims() const { return {dims_.data(), std::size_t(rank_)}; }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank_; ++i) n *= dims_[i];
    return n;
  }
  // Elements of dimensions [from, to).
  std::int64_t elements(int from, int to) const {
    std::int64_t n = 1;
    for (int i = from; i < to; ++i) n *= dims_[i];
    return n;
  }
  void set_dim(int i, std::int64_t value) { dims_[i] = value; }
  // REQUIRES: rank() < kMaxRank.
  void append(std::int64_t dim);
  std::string text() const;  // "[32,784]", "[]"
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> dims_{};
  std::uint8_t rank_ = 0;
};

// elements * element_size with overflow checks; invalid_argument past 2^62 bytes.
Expected<std::int64_t> byte_size(const Shape& shape, std::size_t element_size);

// What is known of a shape before a run: nothing (unknown rank), or a rank with some dimensions
// unknown (-1).
class PartialShape {
 public:
  static constexpr std::int64_t kUnknown = -1;

  PartialShape() = default;  // unknown rank
  PartialShape(std::initializer_list<std::int64_t> dims);
  PartialShape(const Shape& shape);
  // invalid_argument for rank > 8 or a dimension < -1.
  static Expected<PartialShape> make(std::span<const std::int64_t> dims);
  static PartialShape unknown() { return {}; }
  static PartialShape unknown_of_rank(int rank);
  static PartialShape scalar() { return PartialShape(Shape{}); }

  bool known_rank() const { return known_rank_; }
  // REQUIRES: known_rank().
  int rank() const { return int(dims_.size()); }
  std::int64_t dim(int i) const { return dims_[std::size_t(i)]; }
  std::int64_t operator[](int i) const { return dims_[std::size_t(i)]; }
  bool known(int i) const { return dims_[std::size_t(i)] != kUnknown; }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  void set_dim(int i, std::int64_t value) { dims_[std::size_t(i)] = value; }

  bool fully_known() const;
  // REQUIRES: fully_known().
  Shape shape() const;
  // Could a tensor of this shape be on an edge of that partial shape?
  bool accepts(const Shape& shape) const;
  // Both facts together; invalid_argument naming both where they contradict.
  static Expected<PartialShape> merge(const PartialShape& a, const PartialShape& b);
  std::string text() const;  // "[?,784]", "?" for unknown rank
  friend bool operator==(const PartialShape&, const PartialShape&) = default;

 private:
  bool known_rank_ = false;
  std::vector<std::int64_t> dims_;
};

// NumPy broadcasting: align right, 1 stretches. invalid_argument naming both shapes.
Expected<Shape> broadcast(const Shape& a, const Shape& b);
Expected<PartialShape> broadcast(const PartialShape& a, const PartialShape& b);

}  // namespace troupe
