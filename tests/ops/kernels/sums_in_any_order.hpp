// Random tensors, and how far apart sums of the same terms may be that are added up in another
// order (docs/cuda.md).
#pragma once

#include <cmath>

#include <doctest/doctest.h>

#include "core/hash.hpp"
#include "core/tensor.hpp"

namespace troupe::test {

// In [-1, 1).
inline Tensor numbers(Random& random, DType dtype, const Shape& shape) {
  Tensor t = Tensor::make(dtype, shape).value();
  const auto fill = [&](auto tag) {
    using T = decltype(tag);
    for (std::int64_t i = 0; i < t.elements(); ++i)
      t.mutable_data<T>()[i] = T(float(random.uniform(-1, 1)));
  };
  if (dtype == DType::f32) fill(float());
  if (dtype == DType::f64) fill(double());
  if (dtype == DType::f16) fill(half());
  if (dtype == DType::bf16) fill(bfloat16());
  return t;
}

inline double element(const Tensor& t, std::int64_t i) {
  switch (t.dtype()) {
    case DType::f32:
      return t.data<float>()[i];
    case DType::f64:
      return t.data<double>()[i];
    case DType::f16:
      return double(t.data<half>()[i]);
    default:
      return double(t.data<bfloat16>()[i]);
  }
}

inline Tensor sizes_of(const Tensor& t) {
  Tensor sizes = Tensor::make(DType::f64, t.shape()).value();
  for (std::int64_t i = 0; i < t.elements(); ++i)
    sizes.mutable_data<double>()[i] = std::abs(element(t, i));
  return sizes;
}

// Sums of k terms, of whose sizes `sizes` are the sums, in any order, rounded to the type.
inline void check_within(const Tensor& got, const Tensor& want, const Tensor& sizes,
                         std::int64_t k) {
  REQUIRE(got.dtype() == want.dtype());
  REQUIRE(got.shape() == want.shape());
  const double of_sum = want.dtype() == DType::f64 ? std::ldexp(1, -53) : std::ldexp(1, -24);
  const double of_type = want.dtype() == DType::f16    ? std::ldexp(1, -10)
                         : want.dtype() == DType::bf16 ? std::ldexp(1, -7)
                                                       : 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double a = element(got, i), b = element(want, i);
    CHECK(std::abs(a - b) <=
          2 * double(k) * of_sum * sizes.data<double>()[i] + of_type * std::abs(b));
  }
}

// The same sums of f32, whose factors may have been rounded to TF32, and are.
inline void check_rounded_to_tf32(const Tensor& got, const Tensor& want, const Tensor& sizes) {
  REQUIRE(got.shape() == want.shape());
  std::int64_t apart = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double difference = std::abs(element(got, i) - element(want, i));
    CHECK(difference <= std::ldexp(1, -9) * sizes.data<double>()[i]);
    apart += difference > std::ldexp(1, -16) * sizes.data<double>()[i];
  }
  CHECK(apart > 0);
}

}  // namespace troupe::test
