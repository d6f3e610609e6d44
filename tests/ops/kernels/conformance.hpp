// The table that drives every op: conformance_test.cpp says what is checked of each row.
//
// A file of rows, cases_*.cpp, is
//   const AddCases rows([] { return Cases{{.op = "Neg", .inputs = {f64({2}, {1, -2})}, ...}}; });
#pragma once

#include <algorithm>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "core/attr.hpp"
#include "core/hash.hpp"
#include "core/rounding.hpp"
#include "core/tensor.hpp"

namespace troupe::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct OpCase {
  std::string op;
  std::vector<Tensor> inputs = {};
  AttrMap attrs = {};
  // Inputs (f64 or c128) whose gradients must equal finite differences, of both parts.
  std::vector<int> differentiate = {};
  int orders = 2;  // of gradients that are compared; 1 for an op whose gradient has none
  // Outputs, compared to 1e-12 (floats and complex; 1e-6 for f32 and c64) or exactly. Empty: not
  // compared.
  std::vector<Tensor> want = {};
  // Set for a hostile row: building or running must fail with this in the message.
  std::string error = {};
};
using Cases = std::vector<OpCase>;
// What its node is called: "" for the op's name, which is that of a node unless it begins with '_'.
inline std::string node_name(const OpCase& row) {
  return row.op.starts_with('_') ? row.op.substr(1) : std::string();
}

struct AddCases {
  explicit AddCases(Cases (*rows)()) { all().push_back(rows); }
  static std::vector<Cases (*)()>& all() {
    static std::vector<Cases (*)()> list;
    return list;
  }
};

inline Tensor f32(const Shape& shape, std::initializer_list<float> v) {
  return Tensor::of(shape, v);
}
template <class T>
Tensor halves(const Shape& shape, std::initializer_list<double> v) {
  std::vector<T> elements;
  for (double x : v) elements.push_back(rounded<T>(x));
  return Tensor::of<T>(shape, elements);
}
inline Tensor f64(const Shape& shape, std::initializer_list<double> v) {
  return Tensor::of(shape, v);
}
inline Tensor i32(const Shape& shape, std::initializer_list<std::int32_t> v) {
  return Tensor::of(shape, v);
}
inline Tensor i64(const Shape& shape, std::initializer_list<std::int64_t> v) {
  return Tensor::of(shape, v);
}
inline Tensor bools(const Shape& shape, std::initializer_list<bool> v) {
  return Tensor::of(shape, v);
}
inline Tensor strings(const Shape& shape, std::initializer_list<std::string> v) {
  return Tensor::of(shape, v);
}
// f64 values in [low, high): always the same, no two equal in practice.
inline Tensor any(const Shape& shape, double low = -1, double high = 1) {
  static Random random(17);
  static std::vector<double> drawn;
  Tensor t = Tensor::make(DType::f64, shape).value();
  while (drawn.size() < std::size_t(t.elements())) drawn.push_back(random.uniform());
  std::transform(drawn.begin(), drawn.begin() + t.elements(), t.mutable_data<double>(),
                 [=](double each) { return low + (high - low) * each; });
  return t;
}
inline Tensor c64(const Shape& shape, std::initializer_list<std::complex<float>> v) {
  return Tensor::of(shape, v);
}
inline Tensor c128(const Shape& shape, std::initializer_list<std::complex<double>> v) {
  return Tensor::of(shape, v);
}
// c128 values whose parts are in [low, high), as `any` makes them.
inline Tensor any_complex(const Shape& shape, double low = -1, double high = 1) {
  const Tensor parts = any(Shape{shape.elements() * 2}, low, high);
  return Tensor(DType::c128, shape, parts.buffer());
}
inline std::vector<std::int64_t> ints(std::initializer_list<std::int64_t> v) { return v; }

}  // namespace troupe::test
