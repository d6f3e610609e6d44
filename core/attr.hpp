// Attributes: the static arguments of a node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace troupe {

// One value. The order of the alternatives is the wire's: append only.
class Attr {
 public:
  using Value =
      std::variant<std::int64_t, double, bool, std::string, DType, PartialShape, Tensor,
                   std::vector<std::int64_t>, std::vector<double>, std::vector<std::string>,
                   std::vector<DType>, std::vector<PartialShape>>;

  Attr();
  Attr(int v);
  Attr(std::int64_t v);
  Attr(double v);
  Attr(float v);
  Attr(bool v);
  Attr(const char* v);
  Attr(std::string v);
  Attr(std::string_view v);
  Attr(DType v);
  Attr(PartialShape v);
  Attr(const Shape& v);
  Attr(Tensor v);
  Attr(std::vector<std::int64_t> v);
  Attr(std::vector<double> v);
  Attr(std::vector<std::string> v);
  Attr(std::vector<DType> v);
  Attr(std::vector<PartialShape> v);

  // In attr.cpp, as all of these: of twelve alternatives they are long, and every file has maps of
  // attributes.
  Attr(const Attr& other);
  Attr(Attr&& other) noexcept;
  Attr& operator=(const Attr& other);
  Attr& operator=(Attr&& other) noexcept;
  ~Attr();

  const Value& value() const { return value_; }
  // The value as T, or nullptr when it holds another type.
  template <class T>
  const T* get() const {
    return std::get_if<T>(&value_);
  }
  // Its kind as op definitions spell it: "int", "float", "bool", "string", "type", "shape",
  // "tensor", "list(int)", "list(float)", "list(string)", "list(type)", "list(shape)".
  std::string_view kind() const;
  std::string text() const;
  // Bits, not numbers: a NaN equals itself, -0 differs from 0. Tensors compare by content.
  friend bool operator==(const Attr& a, const Attr& b);

 private:
  Value value_;
};

// Ordered by name, so that printing, hashing and comparing are deterministic.
using AttrMap = std::map<std::string, Attr, std::less<>>;

}  // namespace troupe
