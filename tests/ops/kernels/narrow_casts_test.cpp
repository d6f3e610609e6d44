// Numbers that become f16 or bf16 are rounded once, to the nearest, ties to even.
#include <doctest/doctest.h>

#include <cmath>

#include "core/hash.hpp"
#include "ops/api.hpp"
#include "ops/api/constant.hpp"
#include "tests/ops/nn/nn_kernels.hpp"

namespace troupe::test {
namespace {

// The nearest of all numbers with that many digits, the obvious way: scaled to an integer.
double nearest(double x, int digits, int least_exponent) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), least_exponent);
  return std::ldexp(std::rint(std::ldexp(x, digits - 1 - exponent)), exponent - digits + 1);
}
double nearest(DType dtype, double x) {
  const double y = dtype == DType::f16 ? nearest(x, 11, -14) : nearest(x, 8, -126);
  const double most = dtype == DType::f16 ? 65504 : 3.3895313892515355e38;
  return std::abs(y) > most ? std::copysign(HUGE_VAL, y) : y;
}

double cast_to(DType dtype, const Tensor& x) {
  auto y = try_run("Cast", {x}, {{"from", x.dtype()}, {"to", dtype}});
  REQUIRE(y.ok());
  auto z = try_run("Cast", {(*y)[0]}, {{"from", dtype}, {"to", DType::f64}});
  REQUIRE(z.ok());
  return (*z)[0].item<double>();
}

// Just beside the middle of two neighbours, where a first rounding to f32 loses the side.
double beside_a_middle(Random& random, DType dtype) {
  const int digits = dtype == DType::f16 ? 11 : 8;
  const double middle =
      double((std::uint64_t{1} << digits) + 2 * random.below(1 << (digits - 1)) + 1);
  const double x = std::ldexp(middle, int(random.below(20)) - 12);
  const double side = random.below(2) ? HUGE_VAL : -HUGE_VAL;
  return random.below(2) ? std::nextafter(x, side) : -std::nextafter(x, side);
}

}  // namespace

TEST_CASE("a cast from f64 to f16 or bf16 rounds once") {
  Random random(3);
  for (DType dtype : {DType::f16, DType::bf16})
    for (int i = 0; i < 200; ++i) {
      const double x = beside_a_middle(random, dtype);
      REQUIRE(cast_to(dtype, Tensor::scalar(x)) == nearest(dtype, x));
    }
}

TEST_CASE("a cast from f64 to f16 or bf16 keeps zeros, ends, infinities and NaN") {
  for (DType dtype : {DType::f16, DType::bf16}) {
    CAPTURE(dtype_name(dtype));
    for (double x : {0.0, 1.0, -2.5, 65504.0, 65519.99999999, 65520.0, 1e300, -1e300, 3.3895e38,
                     3.3961775292304e38, 3.4028234663852886e38, 1e-8, 2.98023223876953e-08, 1e-320,
                     HUGE_VAL, -HUGE_VAL}) {
      CAPTURE(x);
      CHECK(cast_to(dtype, Tensor::scalar(x)) == nearest(dtype, x));
    }
    CHECK(std::signbit(cast_to(dtype, Tensor::scalar(-0.0))));
    CHECK(std::isnan(cast_to(dtype, Tensor::scalar(std::nan("")))));
  }
}

TEST_CASE("a cast from an integer to bf16 rounds once") {
  const std::int64_t tie = (std::int64_t{1} << 25) + (std::int64_t{1} << 17);  // of two bf16
  const double above = 33816576.0, even = 33554432.0;
  CHECK(cast_to(DType::bf16, Tensor::scalar(tie)) == even);
  CHECK(cast_to(DType::bf16, Tensor::scalar(tie + 1)) == above);
  CHECK(cast_to(DType::bf16, Tensor::scalar(std::int32_t(tie + 1))) == above);
  CHECK(cast_to(DType::bf16, Tensor::scalar(std::uint32_t(tie + 1))) == above);
  CHECK(cast_to(DType::bf16, Tensor::scalar(-(tie + 1))) == -above);
  const std::uint64_t wide = (std::uint64_t{1} << 63) + (std::uint64_t{1} << 55) + 1;
  CHECK(cast_to(DType::bf16, Tensor::scalar(wide)) == std::ldexp(1.0 + 1.0 / 128, 63));
  CHECK(cast_to(DType::bf16, Tensor::scalar(std::int64_t(wide >> 1))) ==
        std::ldexp(1.0, 62));  // the last 1 is gone: a tie
  CHECK(cast_to(DType::bf16, Tensor::scalar(INT64_MIN)) == -std::ldexp(1.0, 63));
}

TEST_CASE("a number beside f16 or bf16 is rounded once") {
  Random random(5);
  for (DType dtype : {DType::f16, DType::bf16})
    for (int i = 0; i < 200; ++i) {
      const double x = beside_a_middle(random, dtype);
      const Tensor y = scalar_of(dtype, x).value();
      const double got = dtype == DType::f16 ? float(y.item<half>()) : float(y.item<bfloat16>());
      REQUIRE(got == nearest(dtype, x));
    }
}

}  // namespace troupe::test
