// Kernels convert the 16-bit floats many at a time, as core converts one.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>

#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

// As many as make whole vectors and a rest, from `first` on, `step` apart.
Tensor patterns(std::uint32_t first, std::uint32_t step, std::int64_t n) {
  Tensor x = Tensor::make(DType::f32, Shape{n}).value();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint32_t bits = first + step * std::uint32_t(i);
    std::memcpy(x.mutable_data<float>() + i, &bits, sizeof bits);
  }
  return x;
}

template <class T>
void check_narrow(const Tensor& x) {
  const Tensor y = run("Cast", {x}, {{"to", dtype_of<T>}})[0];
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < x.elements(); ++i) {
    const T want(x.data<float>()[i]);
    wrong += want.bits != y.data<T>()[i].bits;
  }
  CHECK(wrong == 0);
}

// Every pattern of T, from the given place on.
template <class T>
Tensor all_of(std::int64_t first) {
  Tensor x = Tensor::make(dtype_of<T>, Shape{65536 - first}).value();
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.mutable_data<T>()[i].bits = std::uint16_t(first + i);
  return x;
}

}  // namespace

TEST_CASE("Cast rounds floats to the 16-bit floats that one conversion gives") {
  for (std::uint32_t first : {0u, 1u, 0x7fu}) {
    const Tensor any = patterns(first, 65521, 65551);  // all exponents, both signs
    check_narrow<half>(any);
    check_narrow<bfloat16>(any);
  }
  // Around the ends of either format: each float there.
  for (std::uint32_t first : {0x33000000u, 0x33800000u, 0x38800000u, 0x477fe000u, 0x7f7f0000u,
                              0x7f800000u, 0xb8800000u, 0xff800000u}) {
    const Tensor near = patterns(first - 5000, 1, 10003);
    check_narrow<half>(near);
    check_narrow<bfloat16>(near);
  }
}

TEST_CASE("Cast widens every 16-bit float to the float that it stands for") {
  const auto check = []<class T>(T) {
    for (std::int64_t first : {0, 3}) {
      const Tensor x = all_of<T>(first), y = run("Cast", {x}, {{"to", DType::f32}})[0];
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        const float want = x.data<T>()[i], got = y.data<float>()[i];
        wrong += std::isnan(want) ? !std::isnan(got) : std::memcmp(&want, &got, sizeof got) != 0;
      }
      CHECK(wrong == 0);
    }
  };
  check(half());
  check(bfloat16());
}

TEST_CASE("Cast turns one 16-bit float into the other through the float between them") {
  const Tensor x = all_of<bfloat16>(0), y = run("Cast", {x}, {{"to", DType::f16}})[0];
  const Tensor z = all_of<half>(0), w = run("Cast", {z}, {{"to", DType::bf16}})[0];
  std::int64_t wrong = 0;
  for (std::int64_t i = 0; i < 65536; ++i) {
    const half h(float(x.data<bfloat16>()[i]));
    const bfloat16 b(float(z.data<half>()[i]));
    wrong += h.bits != y.data<half>()[i].bits && !std::isnan(float(h));
    wrong += b.bits != w.data<bfloat16>()[i].bits && !std::isnan(float(b));
  }
  CHECK(wrong == 0);
}

}  // namespace troupe::test
