// Lists of element types: as text for definitions, as types for kernels, and the step from a
// dtype known at run time to a type known to the compiler.
#pragma once

#include <complex>
#include <memory>
#include <string>
#include <type_traits>

#include "ops/op.hpp"

namespace troupe {

template <class... Ts>
struct Types {};
using Reals = Types<float, double>;
using Floats = Types<float, double, half, bfloat16>;
using FloatsAndComplex =
    Types<float, double, half, bfloat16, std::complex<float>, std::complex<double>>;
using Integers = Types<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                       std::uint16_t, std::uint32_t, std::uint64_t>;
using Numbers = Types<float, double, half, bfloat16, std::int8_t, std::int16_t, std::int32_t,
                      std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t>;
using SignedNumbers =
    Types<float, double, half, bfloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t>;
using NumbersAndBool =
    Types<float, double, half, bfloat16, std::int8_t, std::int16_t, std::int32_t, std::int64_t,
          std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool>;
using PlainTypes = Types<float, double, half, bfloat16, std::int8_t, std::int16_t, std::int32_t,
                         std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t,
                         bool, std::complex<float>, std::complex<double>>;
using Indices = Types<std::int32_t, std::int64_t>;

inline constexpr const char* kReals = "f32 f64";
inline constexpr const char* kFloats = "f32 f64 f16 bf16";
inline constexpr const char* kNumbers = "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64";
inline constexpr const char* kSignedNumbers = "f32 f64 f16 bf16 i8 i16 i32 i64";
inline constexpr const char* kNumbersAndBool =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool";
inline constexpr const char* kComplex = "c64 c128";
inline constexpr const char* kFloatsAndComplex = "f32 f64 f16 bf16 c64 c128";
inline constexpr const char* kNumbersAndComplex =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 c64 c128";
inline constexpr const char* kSignedAndComplex = "f32 f64 f16 bf16 i8 i16 i32 i64 c64 c128";
inline constexpr const char* kPlainTypes =  // fixed size: can be copied byte by byte
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128";
inline constexpr const char* kAllTypes =
    "f32 f64 f16 bf16 i8 i16 i32 i64 u8 u16 u32 u64 bool c64 c128 string";

// An op that takes complex numbers, too.
inline OpDef with_complex(OpDef def) {
  def.types += std::string(" ") + kComplex;
  return def;
}

// What arithmetic on T is done in.
template <class T>
using Compute =
    std::conditional_t<std::is_same_v<T, half> || std::is_same_v<T, bfloat16>, float, T>;

template <class T>
struct TypeTag {
  using type = T;
};

// f(TypeTag<T>{}) for the T of `dtype`; R{Status} where the list has no such type.
template <class R, class... Ts, class F>
R dispatch(Types<Ts...>, DType dtype, F&& f) {
  std::optional<R> result;
  (void)((dtype == dtype_of<Ts> && (result.emplace(f(TypeTag<Ts>{})), true)) || ...);
  if (result) return std::move(*result);
  return unimplemented("no kernel for " + std::string(dtype_name(dtype)));
}

// f<T>() with T an unsigned integer of `size` bytes (or a pair of them): for kernels that move
// elements without looking at them.
struct Bytes16 {
  std::uint64_t words[2];
};
template <class F>
Status dispatch_size(std::size_t size, F&& f) {
  switch (size) {
    case 1:
      return f(TypeTag<std::uint8_t>{});
    case 2:
      return f(TypeTag<std::uint16_t>{});
    case 4:
      return f(TypeTag<std::uint32_t>{});
    case 8:
      return f(TypeTag<std::uint64_t>{});
    case 16:
      return f(TypeTag<Bytes16>{});
    default:
      return internal_error("an element of unusual size");
  }
}
// Elements as such a T, whatever their dtype.
template <class T>
const T* moved_as(const Tensor& t) {
  return static_cast<const T*>(t.raw());
}
template <class T>
T* moved_as(Tensor& t) {
  return static_cast<T*>(t.mutable_raw());
}
// The same, strings included.
template <class F>
Status dispatch_moves(DType dtype, F&& f) {
  if (dtype == DType::string) return f(TypeTag<std::string>{});
  return dispatch_size(dtype_size(dtype), std::forward<F>(f));
}

// A function object of an op: made from the node's attributes where it wants them.
template <class F>
F make_function(const KernelSpec& spec) {
  if constexpr (std::is_constructible_v<F, const KernelSpec&>)
    return F(spec);
  else
    return F{};
}

// A kernel class that is made from the spec:   .cpu(make_kernel<MyKernel>)
template <class K>
Expected<std::unique_ptr<Kernel>> make_kernel(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new K(spec));
}

// A kernel class K<T> with T from attribute `attr`:   .cpu(typed_kernel<MyKernel, Floats>)
// K<T> is made from the spec where it has such a constructor.
template <template <class> class K, class List>
Expected<std::unique_ptr<Kernel>> typed_kernel(const KernelSpec& spec) {
  return dispatch<Expected<std::unique_ptr<Kernel>>>(List{}, spec.type(), [&](auto tag) {
    using Typed = K<typename decltype(tag)::type>;
    return std::unique_ptr<Kernel>(new Typed(make_function<Typed>(spec)));
  });
}

// The same where a complex tensor is one of its parts, to a kernel that adds and moves: K<float>
// for c64, K<double> for c128.
template <template <class> class K, class List>
Expected<std::unique_ptr<Kernel>> parts_kernel(const KernelSpec& spec) {
  const DType type = spec.type();
  return dispatch<Expected<std::unique_ptr<Kernel>>>(
      List{}, is_complex(type) ? real_of(type) : type, [&](auto tag) {
        using Typed = K<typename decltype(tag)::type>;
        return std::unique_ptr<Kernel>(new Typed(make_function<Typed>(spec)));
      });
}

}  // namespace troupe
