#include "core/dtype.hpp"

#include <array>
#include <cmath>

namespace troupe {
namespace {

struct Info {
  std::string_view name;
  std::uint8_t size;
};
constexpr std::array<Info, 19> kInfo = {{{"invalid", 0},
                                         {"f32", 4},
                                         {"f64", 8},
                                         {"f16", 2},
                                         {"bf16", 2},
                                         {"i8", 1},
                                         {"i16", 2},
                                         {"i32", 4},
                                         {"i64", 8},
                                         {"u8", 1},
                                         {"u16", 2},
                                         {"u32", 4},
                                         {"u64", 8},
                                         {"bool", 1},
                                         {"c64", 8},
                                         {"c128", 16},
                                         {"string", sizeof(std::string)},
                                         {"resource", 0},
                                         {"list", 0}}};

// The top bits of `value` after dropping `drop` low ones, rounded to nearest, ties to even.
std::uint32_t round_off(std::uint32_t value, int drop) {
  std::uint32_t half_ulp = 1u << (drop - 1);
  std::uint32_t odd = (value >> drop) & 1;
  return (value + half_ulp - 1 + odd) >> drop;
}

}  // namespace

half::half(float value) {
  std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  std::uint32_t sign = f >> 16 & 0x8000;
  std::uint32_t magnitude = f & 0x7fffffff;
  if (magnitude > 0x7f800000) {  // NaN: keep the top of the payload, force it quiet
    bits = std::uint16_t(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
  } else if (magnitude >= 0x477ff000) {  // rounds to 2^16 or more
    bits = std::uint16_t(sign | 0x7c00);
  } else if (magnitude >= 0x38800000) {  // normal: rebias the exponent, a carry is welcome
    bits = std::uint16_t(sign | round_off(magnitude - (112u << 23), 13));
  } else {  // subnormal or zero: units of 2^-24
    int exponent = int(magnitude >> 23);
    int drop = 126 - exponent;
    std::uint32_t mantissa = (magnitude & 0x7fffff) | 0x800000;
    // Below 2^-25 everything rounds to zero (and a float subnormal has no implicit bit).
    bits = std::uint16_t(sign | (drop > 24 ? 0u : round_off(mantissa, drop)));
  }
}

half::operator float() const {
  std::uint32_t sign = std::uint32_t{bits & 0x8000u} << 16;
  std::uint32_t exponent = bits >> 10 & 0x1f;
  std::uint32_t mantissa = bits & 0x3ff;
  if (exponent == 0) {
    float magnitude = float(mantissa) * 0x1.0p-24f;  // exact: 10 bits times a power of two
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
  }
  std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

bfloat16::bfloat16(float value) {
  std::uint32_t f = std::bit_cast<std::uint32_t>(value);
  if ((f & 0x7fffffff) > 0x7f800000)
    bits = std::uint16_t(f >> 16 | 0x40);  // quiet, or a payload in the low half would vanish
  else
    bits = std::uint16_t(round_off(f, 16));
}

std::string_view dtype_name(DType dtype) {
  auto i = std::size_t(dtype);
  return i < kInfo.size() ? kInfo[i].name : "invalid";
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (std::size_t i = 1; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return DType(i);
  return std::nullopt;
}

bool valid_dtype(std::uint8_t value) { return value > 0 && value < kInfo.size(); }

std::size_t dtype_size(DType dtype) {
  auto i = std::size_t(dtype);
  return i < kInfo.size() ? kInfo[i].size : 0;
}

bool is_float(DType d) {
  return d == DType::f32 || d == DType::f64 || d == DType::f16 || d == DType::bf16;
}
bool is_complex(DType d) { return d == DType::c64 || d == DType::c128; }
DType real_of(DType d) {
  return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : DType::invalid;
}
DType complex_of(DType d) {
  return d == DType::f32 ? DType::c64 : d == DType::f64 ? DType::c128 : DType::invalid;
}
bool is_integer(DType d) { return d >= DType::i8 && d <= DType::u64; }
bool is_signed(DType d) {
  return (d >= DType::i8 && d <= DType::i64) || is_float(d) || is_complex(d);
}

bool can_hold(DType dtype, double value) {
  if (!is_integer(dtype) && dtype != DType::bool_) return true;
  const int bits =
      dtype == DType::bool_ ? 1 : 8 * int(dtype_size(dtype)) - (is_signed(dtype) ? 1 : 0);
  const double beyond = std::ldexp(1.0, bits);
  return value == std::trunc(value) && value >= (is_signed(dtype) ? -beyond : 0.0) &&
         value < beyond;
}

}  // namespace troupe
