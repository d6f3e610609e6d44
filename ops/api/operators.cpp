#include "ops/api/operators.hpp"

#include <string>

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"

namespace troupe {

namespace {

Output binary(const char* op, const Operand& a, const Operand& b) {
  const Site& site = a.site().known() ? a.site() : b.site();
  if (!a.is_number()) check_given(std::string(op) + ": the left operand", a.output(), site);
  if (!b.is_number()) check_given(std::string(op) + ": the right operand", b.output(), site);
  if (a.is_number() && b.is_number())  // the language computes these itself
    throw Error(invalid_argument(std::string(op) + ": both operands are numbers").at(site));
  const Output x = a.is_number() ? a.beside(b.output()) : a.output();
  const Output y = b.is_number() ? b.beside(a.output()) : b.output();
  return add_node({.op = op, .inputs = {x, y}, .site = site}).output();
}

// Whether an operator on a and b is one on dtype bool.
bool is_logical(const Operand& a, const Operand& b) {
  const Output& value = a.is_number() ? b.output() : a.output();
  return !value.empty() && value.dtype() == DType::bool_;
}

}  // namespace

Operand::Operand(Dim length, Site site) : site_(std::move(site)) {
  if (!length.known())
    throw Error(
        failed_precondition("the dimension is not known before a run: take it from shape(x)")
            .at(site_));
  number_ = length.value();
}

Output Operand::beside(const Output& other, const Site& site) const {
  if (!is_number()) {
    check_given("an operand", output_, site);
    return output_;
  }
  check_given("what a number stands beside", other, site);
  return constant(other.graph(), scalar(other.dtype(), site), site);
}

Tensor Operand::scalar(DType dtype, const Site& site) const {
  auto value = std::visit(
      [&](auto number) -> Expected<Tensor> {
        if constexpr (std::is_same_v<decltype(number), std::monostate>)
          return internal_error("no number");
        else
          return scalar_of(dtype, number);
      },
      number_);
  if (!value.ok()) throw Error(value.status().at(site));
  return std::move(value).value();
}

Output operator+(const Operand& a, const Operand& b) { return binary("Add", a, b); }
Output operator-(const Operand& a, const Operand& b) { return binary("Sub", a, b); }
Output operator*(const Operand& a, const Operand& b) { return binary("Mul", a, b); }
Output operator/(const Operand& a, const Operand& b) { return binary("Div", a, b); }
Output operator%(const Operand& a, const Operand& b) { return binary("Mod", a, b); }
Output& operator+=(Output& a, const Operand& b) { return a = Operand(a, b.site()) + b; }
Output& operator-=(Output& a, const Operand& b) { return a = Operand(a, b.site()) - b; }
Output& operator*=(Output& a, const Operand& b) { return a = Operand(a, b.site()) * b; }
Output& operator/=(Output& a, const Operand& b) { return a = Operand(a, b.site()) / b; }
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

Output operator&(const Operand& a, const Operand& b) {
  return binary(is_logical(a, b) ? "LogicalAnd" : "BitwiseAnd", a, b);
}
Output operator|(const Operand& a, const Operand& b) {
  return binary(is_logical(a, b) ? "LogicalOr" : "BitwiseOr", a, b);
}
Output operator^(const Operand& a, const Operand& b) {
  return binary(is_logical(a, b) ? "NotEqual" : "BitwiseXor", a, b);
}
Output operator~(const Operand& a) {
  const char* op = is_logical(a, a) ? "LogicalNot" : "Invert";
  return add_node({.op = op, .inputs = {a.output()}, .site = a.site()}).output();
}

}  // namespace troupe
