// Arithmetic and comparison on graph values: `2 * x + b`, `argmax(logits, 1) == labels`.
#pragma once

#include <type_traits>

#include "graph/builder.hpp"

namespace troupe {

// One side of an operator: a graph value or a number. Operators cannot have default arguments, so
// it is this conversion that notes the line of the expression. A number becomes a constant of the
// other side's dtype.
class Operand {
 public:
  Operand(Output output, Site site = Site::here()) : output_(output), site_(std::move(site)) {}
  // What stands for a graph value, such as a Variable.
  template <class T>
  requires(std::is_class_v<T> && !std::is_same_v<T, Output> && !std::is_same_v<T, Operand> &&
           std::is_convertible_v<const T&, Output>)
      Operand(const T& value, Site site = Site::here())
      : Operand(Output(value), std::move(site)) {}
  template <class T>
  requires(std::is_arithmetic_v<T>) Operand(T number, Site site = Site::here())
      : number_(double(number)),
        exact_(std::is_integral_v<T> ? std::int64_t(number) : 0),
        integer_(std::is_integral_v<T>),
        is_number_(true),
        site_(std::move(site)) {}

  bool is_number() const { return is_number_; }
  const Output& output() const { return output_; }
  const Site& site() const { return site_; }
  // The value, or the number as a constant beside `other`. Throws Error for a number that the dtype
  // cannot hold (1.5 beside integers).
  Output beside(const Output& other) const { return beside(other, site_); }
  Output beside(const Output& other, const Site& site) const;

 private:
  Output output_;
  double number_ = 0;
  std::int64_t exact_ = 0;
  bool integer_ = false, is_number_ = false;
  Site site_;
};

Output operator+(const Operand& a, const Operand& b);
Output operator-(const Operand& a, const Operand& b);
Output operator*(const Operand& a, const Operand& b);
Output operator/(const Operand& a, const Operand& b);
Output operator-(const Operand& a);

// Element by element; the results are graph values of dtype bool. Whether two handles mean the same
// port is Output::is.
Output operator==(const Operand& a, const Operand& b);
Output operator!=(const Operand& a, const Operand& b);
Output operator<(const Operand& a, const Operand& b);
Output operator<=(const Operand& a, const Operand& b);
Output operator>(const Operand& a, const Operand& b);
Output operator>=(const Operand& a, const Operand& b);

// Of graph values of dtype bool. Both sides are computed: nothing is left out as for C++'s bool.
Output operator&&(const Operand& a, const Operand& b);
Output operator||(const Operand& a, const Operand& b);
Output operator!(const Operand& a);

}  // namespace troupe
