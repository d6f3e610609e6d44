#include "core/dtype.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "core/hash.hpp"

using namespace troupe;

namespace {

// What a binary16 pattern means, by the book.
double half_value(std::uint16_t bits) {
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31)
    return mantissa ? std::nan("") : sign * std::numeric_limits<double>::infinity();
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

// The nearest pattern of a 16-bit float to a finite positive x, ties to even, by search: `value`
// gives what a pattern means, patterns 0..top grow with their value, and `top` itself is infinity,
// which stands for the next power of two.
template <class Value>
std::uint16_t nearest(double x, std::uint16_t top, double top_value, Value value) {
  std::uint16_t low = 0, high = top;
  while (high - low > 1) {
    auto middle = std::uint16_t((low + high) / 2);
    (value(middle) <= x ? low : high) = middle;
  }
  double below = x - value(low), above = (high == top ? top_value : value(high)) - x;
  if (below != above) return below < above ? low : high;
  return low % 2 == 0 ? low : high;
}

std::uint16_t slow_half(float x) {
  std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isinf(x)) return sign | 0x7c00;
  return sign | nearest(std::fabs(double(x)), 0x7c00, 65536.0, half_value);
}

std::uint16_t slow_bfloat16(float x) {
  std::uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isinf(x)) return sign | 0x7f80;
  auto value = [](std::uint16_t bits) {
    return double(std::bit_cast<float>(std::uint32_t{bits} << 16));
  };
  return sign | nearest(std::fabs(double(x)), 0x7f80, 0x1p128, value);
}

}  // namespace

TEST_CASE("every half pattern converts to the float it stands for and back") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    half h;
    h.bits = std::uint16_t(i);
    double want = half_value(h.bits);
    if (std::isnan(want)) {
      if (!std::isnan(float(h)) || !std::isnan(float(half(float(h))))) ++wrong;
      continue;
    }
    if (double(float(h)) != want || std::signbit(float(h)) != std::signbit(want)) ++wrong;
    if (half(float(h)).bits != h.bits) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("every bfloat16 pattern survives the way through float") {
  int wrong = 0;
  for (std::uint32_t i = 0; i < 65536; ++i) {
    bfloat16 b;
    b.bits = std::uint16_t(i);
    bfloat16 again{float(b)};
    if (std::isnan(float(b)) ? !std::isnan(float(again)) : again.bits != b.bits) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("floats round to the nearest half and bfloat16, ties to even") {
  // Around every half pattern: the value, the midpoint to the next, and one float step either side.
  int wrong = 0;
  auto check = [&](float x) {
    for (float y : {x, -x, std::nextafter(x, 0.0f), std::nextafter(x, 1e30f)}) {
      if (half(y).bits != slow_half(y)) ++wrong;
      if (bfloat16(y).bits != slow_bfloat16(y)) ++wrong;
    }
  };
  for (std::uint16_t i = 0; i < 0x7c00; ++i) {
    double next = i + 1 == 0x7c00 ? 65536.0 : half_value(std::uint16_t(i + 1));
    check(float(half_value(i)));
    check(float((half_value(i) + next) / 2));
  }
  for (std::uint32_t i = 0; i < 0x7f80; i += 7) check(std::bit_cast<float>(i << 16 | 0x8000));
  CHECK(wrong == 0);

  std::uint64_t seed = 20240601;
  INFO("seed ", seed);
  Random random(seed);
  for (int i = 0; i < 200'000; ++i) {
    float x = std::bit_cast<float>(std::uint32_t(random()));
    if (std::isnan(x)) {
      if (!std::isnan(float(half(x))) || !std::isnan(float(bfloat16(x)))) ++wrong;
    } else {
      if (half(x).bits != slow_half(x) || bfloat16(x).bits != slow_bfloat16(x)) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("the edges of the 16-bit floats") {
  CHECK(half(65504.0f).bits == 0x7bff);
  CHECK(half(65519.99f).bits == 0x7bff);
  CHECK(half(65520.0f).bits == 0x7c00);
  CHECK(half(-1e30f).bits == 0xfc00);
  CHECK(half(0x1p-24f).bits == 1);
  CHECK(half(0x1p-25f).bits == 0);
  CHECK(half(0x1.000002p-25f).bits == 1);
  CHECK(half(-0.0f).bits == 0x8000);
  CHECK(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  // A NaN whose payload sits in the bits that are cut off must not become infinity.
  CHECK(std::isnan(float(bfloat16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::isnan(float(half(std::bit_cast<float>(0x7f800001u)))));
  CHECK(half(1.0f) == half(1.0f));
  CHECK_FALSE(half(std::nanf("")) == half(std::nanf("")));
}

TEST_CASE("dtype names read back, other text does not") {
  for (std::uint8_t i = 1; i <= 17; ++i) {
    REQUIRE(valid_dtype(i));
    CHECK(parse_dtype(dtype_name(DType(i))) == DType(i));
  }
  CHECK_FALSE(valid_dtype(0));
  CHECK_FALSE(valid_dtype(19));
  CHECK_FALSE(valid_dtype(255));
  for (auto text : {"", "F32", "f32 ", "float", "invalid", "f31"}) CHECK_FALSE(parse_dtype(text));
  CHECK(dtype_name(DType(200)) == "invalid");
  CHECK(dtype_size(DType(200)) == 0);
}

TEST_CASE("dtype sizes are those of the C++ types") {
  CHECK(dtype_size(dtype_of<float>) == sizeof(float));
  CHECK(dtype_size(dtype_of<half>) == sizeof(half));
  CHECK(dtype_size(dtype_of<bfloat16>) == sizeof(bfloat16));
  CHECK(dtype_size(dtype_of<bool>) == sizeof(bool));
  CHECK(dtype_size(dtype_of<std::uint64_t>) == 8);
  CHECK(dtype_size(dtype_of<std::complex<double>>) == 16);
  CHECK(dtype_size(dtype_of<std::string>) == sizeof(std::string));
  CHECK(dtype_size(DType::invalid) == 0);
  CHECK(dtype_size(DType::resource) == 0);
}

TEST_CASE("each dtype is of one kind") {
  for (std::uint8_t i = 1; i <= 17; ++i) {
    auto d = DType(i);
    bool other = d == DType::bool_ || d == DType::string || d == DType::resource;
    CHECK(int(is_float(d)) + int(is_complex(d)) + int(is_integer(d)) + int(other) == 1);
  }
  CHECK(is_signed(DType::i8));
  CHECK(is_signed(DType::bf16));
  CHECK(is_signed(DType::c64));
  CHECK(real_of(DType::c64) == DType::f32);
  CHECK(real_of(DType::f64) == DType::invalid);
  CHECK(complex_of(DType::f64) == DType::c128);
  CHECK(complex_of(DType::f16) == DType::invalid);
  CHECK_FALSE(is_signed(DType::u8));
  CHECK_FALSE(is_signed(DType::bool_));
  CHECK_FALSE(is_trainable(DType::i32));
}

TEST_CASE("integers and bools hold whole numbers of their range, others any") {
  for (DType d : {DType::f16, DType::f32, DType::c64, DType::string}) CHECK(can_hold(d, 0.9));
  CHECK(can_hold(DType::i8, -128));
  CHECK_FALSE(can_hold(DType::i8, 128));
  CHECK(can_hold(DType::u8, 255));
  CHECK_FALSE(can_hold(DType::u8, -1));
  CHECK(can_hold(DType::i64, -0x1p63));
  CHECK_FALSE(can_hold(DType::i64, 0x1p63));
  CHECK(can_hold(DType::u64, 0x1p63));
  CHECK_FALSE(can_hold(DType::u64, 0x1p64));
  CHECK(can_hold(DType::bool_, 1));
  CHECK_FALSE(can_hold(DType::bool_, 2));
  for (double no : {0.5, HUGE_VAL, -HUGE_VAL, std::nan("")}) CHECK_FALSE(can_hold(DType::i32, no));
}
