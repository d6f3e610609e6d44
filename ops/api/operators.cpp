#include "ops/api/operators.hpp"

#include <cmath>

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"

namespace troupe {

namespace {

Output binary(const char* op, const Operand& a, const Operand& b) {
  const Site& site = a.site().known() ? a.site() : b.site();
  // Two numbers never get here: the language computes them itself.
  const Output x = a.is_number() ? a.beside(b.output()) : a.output();
  const Output y = b.is_number() ? b.beside(a.output()) : b.output();
  return add_node({.op = op, .inputs = {x, y}, .site = site}).output();
}

}  // namespace

Output Operand::beside(const Output& other, const Site& site) const {
  if (other.empty()) throw Error(invalid_argument("an operand is an empty Output").at(site));
  const DType dtype = other.dtype();
  auto value = integer_ ? scalar_of(dtype, exact_) : scalar_of(dtype, number_);
  if (!value.ok()) throw Error(value.status().at(site));
  return constant(other.graph(), std::move(value).value(), site);
}

Output operator+(const Operand& a, const Operand& b) { return binary("Add", a, b); }
Output operator-(const Operand& a, const Operand& b) { return binary("Sub", a, b); }
Output operator*(const Operand& a, const Operand& b) { return binary("Mul", a, b); }
Output operator/(const Operand& a, const Operand& b) { return binary("Div", a, b); }
Output operator-(const Operand& a) {
  return add_node({.op = "Neg", .inputs = {a.output()}, .site = a.site()}).output();
}

Output operator==(const Operand& a, const Operand& b) { return binary("Equal", a, b); }
Output operator!=(const Operand& a, const Operand& b) { return binary("NotEqual", a, b); }
Output operator<(const Operand& a, const Operand& b) { return binary("Less", a, b); }
Output operator<=(const Operand& a, const Operand& b) { return binary("LessEqual", a, b); }
Output operator>(const Operand& a, const Operand& b) { return binary("Greater", a, b); }
Output operator>=(const Operand& a, const Operand& b) { return binary("GreaterEqual", a, b); }

Output operator&&(const Operand& a, const Operand& b) { return binary("LogicalAnd", a, b); }
Output operator||(const Operand& a, const Operand& b) { return binary("LogicalOr", a, b); }
Output operator!(const Operand& a) {
  return add_node({.op = "LogicalNot", .inputs = {a.output()}, .site = a.site()}).output();
}

}  // namespace troupe
