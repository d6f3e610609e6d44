// Arithmetic and comparison on graph values: `2 * x + b`, `argmax(logits, 1) == labels`.
#pragma once

#include <cstdint>
#include <type_traits>
#include <variant>

#include "graph/builder.hpp"

namespace troupe {

// One side of an operator: a graph value or a number. Operators cannot have default arguments, so
// it is this conversion that notes the line of the expression. A number becomes a constant of the
// other side's dtype.
class Operand {
 public:
  Operand(Output output, Site site = Site::here()) : output_(output), site_(std::move(site)) {}
  // Anything that converts to an Output, such as a Variable.
  template <class T>
  requires(std::is_class_v<T> && !std::is_same_v<T, Output> && !std::is_same_v<T, Operand> &&
           std::is_convertible_v<const T&, Output>)
      Operand(const T& value, Site site = Site::here())
      : Operand(Output(value), std::move(site)) {}
  template <class T>
  requires(std::is_arithmetic_v<T>) Operand(T number, Site site = Site::here())
      : site_(std::move(site)) {
    if constexpr (std::is_floating_point_v<T>)
      number_ = double(number);
    else if constexpr (std::is_unsigned_v<T>)
      number_ = std::uint64_t(number);
    else
      number_ = std::int64_t(number);
  }
  // A dimension of a shape. Throws Error if it is unknown before a run.
  Operand(Dim length, Site site = Site::here());

  bool is_number() const { return number_.index() != 0; }
  const Output& output() const { return output_; }  // empty for a number
  const Site& site() const { return site_; }
  // The value, or the number as a constant beside `other`. Throws Error for a number that the dtype
  // cannot hold (1.5 beside integers), and for an Output that is empty.
  Output beside(const Output& other) const { return beside(other, site_); }
  Output beside(const Output& other, const Site& site) const;
  // The number as a scalar. Throws Error for a number that the dtype cannot hold. REQUIRES:
  // is_number().
  Tensor scalar(DType dtype, const Site& site) const;

 private:
  Output output_;
  std::variant<std::monostate, std::int64_t, std::uint64_t, double> number_;
  Site site_;
};

Output operator+(const Operand& a, const Operand& b);
Output operator-(const Operand& a, const Operand& b);
Output operator*(const Operand& a, const Operand& b);
Output operator/(const Operand& a, const Operand& b);
// The remainder with the sign of b, as Python's: mod().
Output operator%(const Operand& a, const Operand& b);
Output operator-(const Operand& a);

// x += y is x = x + y, for an Output that is a sum, product and so on of what came before. Writes
// no variable: assign_add() does.
Output& operator+=(Output& a, const Operand& b);
Output& operator-=(Output& a, const Operand& b);
Output& operator*=(Output& a, const Operand& b);
Output& operator/=(Output& a, const Operand& b);

// Elementwise comparison; results are graph values of dtype bool. To compare handles, use
// Output::is.
Output operator==(const Operand& a, const Operand& b);
Output operator!=(const Operand& a, const Operand& b);
Output operator<(const Operand& a, const Operand& b);
Output operator<=(const Operand& a, const Operand& b);
Output operator>(const Operand& a, const Operand& b);
Output operator>=(const Operand& a, const Operand& b);

// Logical operators on graph values of dtype bool. Unlike C++'s, they always compute both sides.
Output operator&&(const Operand& a, const Operand& b);
Output operator||(const Operand& a, const Operand& b);
Output operator!(const Operand& a);

// NumPy's and PyTorch's operators: logical for bool, bit by bit for integers.
Output operator&(const Operand& a, const Operand& b);
Output operator|(const Operand& a, const Operand& b);
Output operator^(const Operand& a, const Operand& b);
Output operator~(const Operand& a);

}  // namespace troupe
