// Element types of tensors, and the two 16-bit floats.
#pragma once

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

// The values cross the wire and stand in files: append only. `invalid` is never an element type.
// `resource` is the type of a handle edge (Variable, queue, dataset): it exists while a graph is
// built and compiled and never at run time (graph/compile.hpp resolves it). A tensor of type `list`
// is a scalar that holds a List (core/list.hpp): it has no bytes that could be read, sent or saved.
enum class DType : std::uint8_t {
  invalid = 0,
  f32 = 1,
  f64 = 2,
  f16 = 3,
  bf16 = 4,
  i8 = 5,
  i16 = 6,
  i32 = 7,
  i64 = 8,
  u8 = 9,
  u16 = 10,
  u32 = 11,
  u64 = 12,
  bool_ = 13,
  c64 = 14,   // complex of two f32
  c128 = 15,  // complex of two f64
  string = 16,
  resource = 17,
  list = 18,
};

// IEEE binary16, as storage; arithmetic goes through float. Conversions round to nearest even.
struct half {
  std::uint16_t bits = 0;
  half() = default;
  explicit half(float value);
  operator float() const;
  friend bool operator==(half a, half b) { return float(a) == float(b); }
};

// The upper half of an f32. Conversion from float rounds to nearest even; NaN stays NaN.
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value);
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  friend bool operator==(bfloat16 a, bfloat16 b) { return float(a) == float(b); }
};

// "f32", "i64", "bool", "c64", "string"...
std::string_view dtype_name(DType dtype);
// The type with that name; nullopt for any other text.
std::optional<DType> parse_dtype(std::string_view name);
bool valid_dtype(std::uint8_t value);
// Bytes of one element. Strings are std::string objects in memory: sizeof(std::string).
// 0 for invalid, resource and list.
std::size_t dtype_size(DType dtype);

bool is_float(DType dtype);    // f32 f64 f16 bf16
bool is_complex(DType dtype);  // c64 c128
bool is_integer(DType dtype);  // i8..i64, u8..u64
bool is_signed(DType dtype);   // integers i8..i64, floats, complex
// Whether an element can be that number: an integer or a bool any whole number of its range, others
// any at all, rounded.
bool can_hold(DType dtype, double value);
// The type of the parts of a complex number: f32 for c64, f64 for c128; invalid for any other.
DType real_of(DType dtype);
// The complex type with such parts: c64 for f32, c128 for f64; invalid for any other.
DType complex_of(DType dtype);
// What sums and counts beside values of this dtype are made in: f32 for f16 and bf16, which soon
// hold no further 1; else the dtype itself.
inline DType wide(DType d) { return d == DType::f16 || d == DType::bf16 ? DType::f32 : d; }
inline bool is_trainable(DType d) { return is_float(d) || is_complex(d); }
// May a gradient come back through a value of that type? Of a list it is one of its elements.
inline bool carries_gradient(DType d) { return is_trainable(d) || d == DType::list; }

// dtype_of<float> == DType::f32. Undefined for types that are no element type.
template <class T>
inline constexpr DType dtype_of = DType::invalid;
template <>
inline constexpr DType dtype_of<float> = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<half> = DType::f16;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<std::int8_t> = DType::i8;
template <>
inline constexpr DType dtype_of<std::int16_t> = DType::i16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;
template <>
inline constexpr DType dtype_of<std::uint8_t> = DType::u8;
template <>
inline constexpr DType dtype_of<std::uint16_t> = DType::u16;
template <>
inline constexpr DType dtype_of<std::uint32_t> = DType::u32;
template <>
inline constexpr DType dtype_of<std::uint64_t> = DType::u64;
template <>
inline constexpr DType dtype_of<bool> = DType::bool_;
template <>
inline constexpr DType dtype_of<std::complex<float>> = DType::c64;
template <>
inline constexpr DType dtype_of<std::complex<double>> = DType::c128;
template <>
inline constexpr DType dtype_of<std::string> = DType::string;

}  // namespace troupe
