// Shapes: of tensors (every dimension known) and of graph edges (some or all unknown).
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "core/status.hpp"

namespace troupe {

inline constexpr int kMaxRank = 8;

// The shape of a tensor: rank 0 (a scalar) to 8, every dimension >= 0, and an element count that
// fits 63 bits. A value; 72 bytes, no allocation. Dimensions from outside go through `make`.
class Shape {
 public:
  Shape() = default;  // scalar
  // For literals and for dimensions already checked: throw Error for a negative dimension and for
  // more than 8. That the elements can be counted is up to the caller.
  Shape(std::initializer_list<std::int64_t> dims, const char* file = __builtin_FILE(),
        int line = __builtin_LINE());
  explicit Shape(std::span<const std::int64_t> dims);

  // invalid_argument for rank > 8, a negative dimension, or a product past 2^63 - 1 (zeros left
  // out, so that no partial product overflows either).
  static Expected<Shape> make(std::span<const std::int64_t> dims);

  int rank() const { return rank_; }
  // Throw Error (out_of_range) unless 0 <= i < rank(). Loops over elements use dims().
  std::int64_t dim(int i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (i < 0 || i >= rank_) [[unlikely]]
      no_dimension(i, file, line);
    return dims_[std::size_t(i)];
  }
  std::int64_t operator[](int i) const { return dim(i, nullptr, 0); }
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
  // Throw Error for a dimension that is not there or cannot be.
  void set_dim(int i, std::int64_t value);
  void append(std::int64_t dim);
  std::string text() const;  // "[32,784]", "[]"
  friend bool operator==(const Shape& a, const Shape& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.dims_[i] != b.dims_[i]) return false;
    return true;
  }

 private:
  [[noreturn]] void no_dimension(int i, const char* file, int line) const;

  std::array<std::int64_t, kMaxRank> dims_{};
  std::uint8_t rank_ = 0;
};

// elements * element_size with overflow checks; invalid_argument past 2^62 bytes.
Expected<std::int64_t> byte_size(const Shape& shape, std::size_t element_size);

// A dimension before a run: its length, or unknown. Arithmetic with an unknown one throws Error
// instead of computing with -1, and so does an operator on graph values (ops/api/operators.hpp). A
// std::int64_t made of it is -1 (PartialShape::kUnknown).
class Dim {
 public:
  constexpr Dim(std::int64_t length) : length_(length) {}
  constexpr bool known() const { return length_ >= 0; }
  // Throws Error when it is unknown.
  constexpr std::int64_t value() const {
    if (!known()) [[unlikely]]
      unknown();
    return length_;
  }
  constexpr operator std::int64_t() const { return length_; }
  template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, std::int64_t> &&
           !std::is_same_v<T, bool>) constexpr explicit
  operator T() const {
    return T(value());
  }

  friend constexpr std::int64_t operator-(Dim a) { return -a.value(); }
  friend constexpr std::int64_t operator+(Dim a, Dim b) { return a.value() + b.value(); }
  friend constexpr std::int64_t operator-(Dim a, Dim b) { return a.value() - b.value(); }
  friend constexpr std::int64_t operator*(Dim a, Dim b) { return a.value() * b.value(); }
  friend constexpr std::int64_t operator/(Dim a, Dim b) { return a.value() / b.value(); }
  friend constexpr std::int64_t operator%(Dim a, Dim b) { return a.value() % b.value(); }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator+(Dim a, T b) {
    return a.value() + b;
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator-(Dim a, T b) {
    return a.value() - b;
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator*(Dim a, T b) {
    return a.value() * b;
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator/(Dim a, T b) {
    return a.value() / b;
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator%(Dim a, T b) {
    return a.value() % b;
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator+(T a, Dim b) {
    return a + b.value();
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator-(T a, Dim b) {
    return a - b.value();
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator*(T a, Dim b) {
    return a * b.value();
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator/(T a, Dim b) {
    return a / b.value();
  }
  template <class T>
  requires(std::is_arithmetic_v<T>) friend constexpr auto operator%(T a, Dim b) {
    return a % b.value();
  }

 private:
  [[noreturn]] static void unknown();

  std::int64_t length_;
};

// What is known of a shape before a run: nothing (unknown rank), or a rank with some dimensions
// unknown (-1).
class PartialShape {
 public:
  static constexpr std::int64_t kUnknown = -1;

  PartialShape() = default;  // unknown rank
  // Throws Error for what `make` refuses.
  PartialShape(std::initializer_list<std::int64_t> dims, const char* file = __builtin_FILE(),
               int line = __builtin_LINE());
  PartialShape(const Shape& shape);
  // invalid_argument for rank > 8 or a dimension < -1.
  static Expected<PartialShape> make(std::span<const std::int64_t> dims);
  static PartialShape unknown() { return {}; }
  static PartialShape unknown_of_rank(int rank);
  static PartialShape scalar() { return PartialShape(Shape{}); }

  bool known_rank() const { return known_rank_; }
  // Throws Error (failed_precondition) unless known_rank().
  int rank(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (!known_rank_) [[unlikely]]
      no_rank(file, line);
    return int(dims_.size());
  }
  // Throw Error unless the rank is known and 0 <= i < rank().
  Dim dim(int i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (i < 0 || std::size_t(i) >= dims_.size()) [[unlikely]]
      no_dimension(i, file, line);
    return Dim(dims_[std::size_t(i)]);
  }
  Dim operator[](int i) const { return dim(i, nullptr, 0); }
  bool known(int i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return dim(i, file, line).known();
  }
  const std::vector<std::int64_t>& dims() const { return dims_; }
  void set_dim(int i, std::int64_t value);

  bool fully_known() const;
  // Throws Error (failed_precondition) unless fully_known().
  Shape shape(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const;
  // Could a tensor of this shape be on an edge of that partial shape?
  bool accepts(const Shape& shape) const;
  // Both facts together; invalid_argument naming both where they contradict.
  static Expected<PartialShape> merge(const PartialShape& a, const PartialShape& b);
  std::string text() const;  // "[?,784]", "?" for unknown rank
  friend bool operator==(const PartialShape&, const PartialShape&) = default;

 private:
  [[noreturn]] void no_dimension(int i, const char* file, int line) const;
  [[noreturn]] static void no_rank(const char* file, int line);

  bool known_rank_ = false;
  std::vector<std::int64_t> dims_;
};

// NumPy broadcasting: align right, 1 stretches. invalid_argument naming both shapes.
Expected<Shape> broadcast(const Shape& a, const Shape& b);
Expected<PartialShape> broadcast(const PartialShape& a, const PartialShape& b);

}  // namespace troupe
