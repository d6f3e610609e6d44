// Vectors as wide as the ISA level has them, and the few operations that C++ lacks for them.
//
// A function template written with these takes a float, a double or a Packet of either, so that the
// same formula serves a loop over packets and a loop that the compiler vectorises.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/kernels/support/inline.hpp"

namespace troupe {

#if defined(__AVX512F__)
inline constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t kVectorBytes = 32;
#else
inline constexpr std::size_t kVectorBytes = 16;
#endif

template <class T, std::size_t bytes>
struct VectorType {
  typedef T type __attribute__((vector_size(bytes)));
  typedef T unaligned __attribute__((vector_size(bytes), aligned(alignof(T)), may_alias));
};
template <class T>
using Vector = typename VectorType<T, kVectorBytes>::type;

// Two vectors: the operations of one are done while those of the other wait for their operands.
template <class T>
struct Packet {
  Vector<T> low, high;

  friend Packet operator-(Packet x) { return {-x.low, -x.high}; }
  friend Packet operator~(Packet x) { return {~x.low, ~x.high}; }
  friend Packet operator+(Packet x, Packet y) { return {x.low + y.low, x.high + y.high}; }
  friend Packet operator-(Packet x, Packet y) { return {x.low - y.low, x.high - y.high}; }
  friend Packet operator*(Packet x, Packet y) { return {x.low * y.low, x.high * y.high}; }
  friend Packet operator/(Packet x, Packet y) { return {x.low / y.low, x.high / y.high}; }
  friend Packet operator&(Packet x, Packet y) { return {x.low & y.low, x.high & y.high}; }
  friend Packet operator|(Packet x, Packet y) { return {x.low | y.low, x.high | y.high}; }
  friend Packet operator^(Packet x, Packet y) { return {x.low ^ y.low, x.high ^ y.high}; }
  friend Packet operator+(Packet x, T y) { return {x.low + y, x.high + y}; }
  friend Packet operator-(Packet x, T y) { return {x.low - y, x.high - y}; }
  friend Packet operator*(Packet x, T y) { return {x.low * y, x.high * y}; }
  friend Packet operator&(Packet x, T y) { return {x.low & y, x.high & y}; }
  friend Packet operator|(Packet x, T y) { return {x.low | y, x.high | y}; }
  friend Packet operator<<(Packet x, int n) { return {x.low << n, x.high << n}; }
  friend Packet operator>>(Packet x, int n) { return {x.low >> n, x.high >> n}; }
  friend auto operator<(Packet x, Packet y) { return mask(x.low < y.low, x.high < y.high); }
  friend auto operator>(Packet x, Packet y) { return mask(x.low > y.low, x.high > y.high); }
  friend auto operator<=(Packet x, Packet y) { return mask(x.low <= y.low, x.high <= y.high); }
  friend auto operator==(Packet x, Packet y) { return mask(x.low == y.low, x.high == y.high); }
  friend auto operator==(Packet x, T y) { return mask(x.low == y, x.high == y); }

  static auto mask(auto low, auto high) {
    using Integer = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    return Packet<Integer>{low, high};
  }
};
template <class T>
inline constexpr std::int64_t kPacketWidth = 2 * kVectorBytes / sizeof(T);

// The type of one element of V, and the unsigned integers of its bits.
template <class V>
struct PacketTraits;
template <>
struct PacketTraits<float> {
  using Element = float;
  using Bits = std::uint32_t;
};
template <>
struct PacketTraits<double> {
  using Element = double;
  using Bits = std::uint64_t;
};
template <>
struct PacketTraits<Packet<float>> {
  using Element = float;
  using Bits = Packet<std::uint32_t>;
};
template <>
struct PacketTraits<Packet<double>> {
  using Element = double;
  using Bits = Packet<std::uint64_t>;
};
template <class V>
using ElementOf = typename PacketTraits<V>::Element;
template <class V>
using BitsOf = typename PacketTraits<V>::Bits;

template <class V>
TROUPE_INLINE BitsOf<V> to_bits(V x) {
  if constexpr (std::is_same_v<V, ElementOf<V>>)
    return std::bit_cast<BitsOf<V>>(x);
  else
    return {Vector<BitsOf<ElementOf<V>>>(x.low), Vector<BitsOf<ElementOf<V>>>(x.high)};
}
template <class V>
TROUPE_INLINE V from_bits(BitsOf<V> bits) {
  if constexpr (std::is_same_v<V, ElementOf<V>>)
    return std::bit_cast<V>(bits);
  else
    return {Vector<ElementOf<V>>(bits.low), Vector<ElementOf<V>>(bits.high)};
}
template <class T>
inline constexpr auto kSignBit = std::bit_cast<BitsOf<T>>(T(-0.0));

template <class V>
TROUPE_INLINE V splat(ElementOf<V> x) {
  if constexpr (std::is_same_v<V, ElementOf<V>>) {
    return x;
  } else {
    const auto all = x - Vector<ElementOf<V>>{};  // a sum would lose the sign of -0
    return {all, all};
  }
}
// In each lane `yes` where the mask holds, else `no`.
template <class V>
TROUPE_INLINE V choose(bool mask, V yes, V no) {
  // Without a branch, which would keep a loop from being vectorised.
  const auto all = BitsOf<V>(0) - BitsOf<V>(mask);
  return from_bits<V>((to_bits(yes) & all) | (to_bits(no) & ~all));
}
template <class T, class Mask>
TROUPE_INLINE Packet<T> choose(Mask mask, Packet<T> yes, Packet<T> no) {
  return {mask.low ? yes.low : no.low, mask.high ? yes.high : no.high};
}
template <class V>
TROUPE_INLINE V magnitude(V x) {
  return from_bits<V>(to_bits(x) & ~kSignBit<ElementOf<V>>);
}
// The magnitude of x with the sign of `sign`.
template <class V>
TROUPE_INLINE V with_sign(V x, V sign) {
  constexpr auto kSign = kSignBit<ElementOf<V>>;
  return from_bits<V>((to_bits(x) & ~kSign) | (to_bits(sign) & kSign));
}

// a b + c, rounded once where the level has an instruction for it.
TROUPE_INLINE float multiply_add(float a, float b, float c) {
#if defined(__FMA__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
TROUPE_INLINE double multiply_add(double a, double b, double c) {
#if defined(__FMA__)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
template <class T>
TROUPE_INLINE Vector<T> multiply_add_vectors(Vector<T> a, Vector<T> b, Vector<T> c) {
  constexpr bool kFloat = std::is_same_v<T, float>;
#if defined(__AVX512F__)
  if constexpr (kFloat)
    return _mm512_fmadd_ps(a, b, c);
  else
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  if constexpr (kFloat)
    return _mm256_fmadd_ps(a, b, c);
  else
    return _mm256_fmadd_pd(a, b, c);
#else
  (void)kFloat;
  return a * b + c;
#endif
}
template <class T>
TROUPE_INLINE Packet<T> multiply_add(Packet<T> a, Packet<T> b, Packet<T> c) {
  return {multiply_add_vectors<T>(a.low, b.low, c.low),
          multiply_add_vectors<T>(a.high, b.high, c.high)};
}
template <class T>
TROUPE_INLINE Packet<T> multiply_add(Packet<T> a, std::type_identity_t<T> b, Packet<T> c) {
  return multiply_add(a, splat<Packet<T>>(b), c);
}
template <class T>
TROUPE_INLINE Packet<T> multiply_add(Packet<T> a, Packet<T> b, std::type_identity_t<T> c) {
  return multiply_add(a, b, splat<Packet<T>>(c));
}

template <class T>
TROUPE_INLINE Packet<T> load_packet(const T* from) {
  using Loose = typename VectorType<T, kVectorBytes>::unaligned;
  return {*reinterpret_cast<const Loose*>(from),
          *reinterpret_cast<const Loose*>(from + kPacketWidth<T> / 2)};
}
template <class T>
TROUPE_INLINE void store_packet(T* to, Packet<T> x) {
  using Loose = typename VectorType<T, kVectorBytes>::unaligned;
  *reinterpret_cast<Loose*>(to) = x.low;
  *reinterpret_cast<Loose*>(to + kPacketWidth<T> / 2) = x.high;
}

// The first n elements of a packet; of one that is loaded the others are `padding`.
// REQUIRES: 0 < n < kPacketWidth<T>.
template <class T>
TROUPE_INLINE Packet<T> load_part(const T* from, std::int64_t n, T padding) {
#if defined(__AVX512F__)
  const Vector<T> rest = splat<Packet<T>>(padding).low;
  const std::uint32_t mask = (std::uint32_t{1} << n) - 1;
  if constexpr (std::is_same_v<T, float>)
    return {_mm512_mask_loadu_ps(rest, __mmask16(mask), from),
            _mm512_mask_loadu_ps(rest, __mmask16(mask >> 16), from + 16)};
  else
    return {_mm512_mask_loadu_pd(rest, __mmask8(mask), from),
            _mm512_mask_loadu_pd(rest, __mmask8(mask >> 8), from + 8)};
#else
  T all[kPacketWidth<T>];
  std::fill_n(all, kPacketWidth<T>, padding);
  std::copy_n(from, n, all);
  return load_packet(all);
#endif
}
template <class T>
TROUPE_INLINE void store_part(T* to, std::int64_t n, Packet<T> x) {
#if defined(__AVX512F__)
  const std::uint32_t mask = (std::uint32_t{1} << n) - 1;
  if constexpr (std::is_same_v<T, float>) {
    _mm512_mask_storeu_ps(to, __mmask16(mask), x.low);
    _mm512_mask_storeu_ps(to + 16, __mmask16(mask >> 16), x.high);
  } else {
    _mm512_mask_storeu_pd(to, __mmask8(mask), x.low);
    _mm512_mask_storeu_pd(to + 8, __mmask8(mask >> 8), x.high);
  }
#else
  T all[kPacketWidth<T>];
  store_packet(all, x);
  std::copy_n(all, n, to);
#endif
}

// In each lane b where it is larger (smaller), else a: where one is NaN, a.
template <class V>
TROUPE_INLINE V larger(V a, V b) {
  using T [[maybe_unused]] = std::remove_cvref_t<decltype(a[0])>;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_max_ps(b, a);
  else if constexpr (std::is_same_v<T, double>)
    return _mm512_max_pd(b, a);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return _mm256_max_ps(b, a);
  else if constexpr (std::is_same_v<T, double>)
    return _mm256_max_pd(b, a);
#endif
  return b > a ? b : a;
}
template <class V>
TROUPE_INLINE V smaller(V a, V b) {
  using T [[maybe_unused]] = std::remove_cvref_t<decltype(a[0])>;
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return _mm512_min_ps(b, a);
  else if constexpr (std::is_same_v<T, double>)
    return _mm512_min_pd(b, a);
#elif defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>)
    return _mm256_min_ps(b, a);
  else if constexpr (std::is_same_v<T, double>)
    return _mm256_min_pd(b, a);
#endif
  return b < a ? b : a;
}
// x between `low` and `high`, or NaN.
template <class T>
TROUPE_INLINE T clamped(T x, T low, T high) requires std::is_floating_point_v<T> {
  x = choose(x < low, low, x);
  return choose(x > high, high, x);
}
template <class T>
TROUPE_INLINE Packet<T> clamped(Packet<T> x, T low, T high) {
  const Vector<T> least = splat<Packet<T>>(low).low, most = splat<Packet<T>>(high).low;
  return {smaller(larger(x.low, least), most), smaller(larger(x.high, least), most)};
}

// y 2^n of an integer n, rounded once: an instruction that AVX-512 alone has.
#if defined(__AVX512F__)
inline constexpr bool kScales = true;
#else
inline constexpr bool kScales = false;
#endif
template <class T>
TROUPE_INLINE Packet<T> scaled([[maybe_unused]] Packet<T> y,
                               [[maybe_unused]] Packet<T> n) requires kScales {
#if defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>)
    return {_mm512_scalef_ps(y.low, n.low), _mm512_scalef_ps(y.high, n.high)};
  else
    return {_mm512_scalef_pd(y.low, n.low), _mm512_scalef_pd(y.high, n.high)};
#endif
}

// Whether a comparison holds in any lane.
TROUPE_INLINE bool any_lane(bool mask) { return mask; }
template <class T>
TROUPE_INLINE bool any_lane(Packet<T> mask) {
  const auto either = mask.low | mask.high;
#if defined(__AVX512F__)
  return _mm512_movepi32_mask(std::bit_cast<__m512i>(either)) != 0;
#elif defined(__AVX2__)
  return _mm256_movemask_ps(std::bit_cast<__m256>(either)) != 0;
#else
  return _mm_movemask_ps(std::bit_cast<__m128>(either)) != 0;
#endif
}

TROUPE_INLINE Packet<double> widen(Vector<float> x) {
#if defined(__AVX512F__)
  return {_mm512_cvtps_pd(_mm512_castps512_ps256(x)),
          _mm512_cvtps_pd(_mm512_extractf32x8_ps(x, 1))};
#elif defined(__AVX2__)
  return {_mm256_cvtps_pd(_mm256_castps256_ps128(x)), _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1))};
#else
  return {_mm_cvtps_pd(x), _mm_cvtps_pd(_mm_movehl_ps(x, x))};
#endif
}
TROUPE_INLINE Vector<float> narrow(Packet<double> x) {
#if defined(__AVX512F__)
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps(x.low)), _mm512_cvtpd_ps(x.high),
                            1);
#elif defined(__AVX2__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm256_cvtpd_ps(x.low)),
                              _mm256_cvtpd_ps(x.high), 1);
#else
  return _mm_movelh_ps(_mm_cvtpd_ps(x.low), _mm_cvtpd_ps(x.high));
#endif
}
// f(x...) computed in double and rounded once: for functions of floats whose formula needs more
// digits than a float has.
template <class F>
TROUPE_INLINE float in_double(F f, std::same_as<float> auto... x) {
  return float(f(double(x)...));
}
template <class F>
TROUPE_INLINE Packet<float> in_double(F f, std::same_as<Packet<float>> auto... x) {
  return {narrow(f(widen(x.low)...)), narrow(f(widen(x.high)...))};
}

// Rows of n elements, a packet at a time: f(at, to), where at(k) is a packet of in[k] and to(k, y)
// makes one of out[k]. An input whose step is 0 is one element for all. The last elements are in
// packets like the others, padded: an element's bits depend neither on where its row starts in
// memory nor on the length of the row. An output may be an input if f calls `at` first.
template <class T, int inputs, int outputs, class F>
inline void map_packets(std::int64_t n, const T* const (&in)[inputs],
                        const std::int64_t (&steps)[inputs], T* const (&out)[outputs], F f,
                        T padding = T(1)) {
  constexpr std::int64_t kWidth = kPacketWidth<T>;
  for (std::int64_t i = 0; i < n; i += kWidth) {
    const std::int64_t count = n - i;
    f(
        [&](int k) {
          if (steps[k] == 0) return splat<Packet<T>>(*in[k]);
          return count < kWidth ? load_part(in[k] + i, count, padding) : load_packet(in[k] + i);
        },
        [&](int k, Packet<T> y) {
          if (count < kWidth)
            store_part(out[k] + i, count, y);
          else
            store_packet(out[k] + i, y);
        });
  }
}

// f(packet) of a row of n elements, the last packet padded.
template <class T, class F>
inline void each_packet(std::int64_t n, const T* x, T padding, F f) {
  constexpr std::int64_t kWidth = kPacketWidth<T>;
  for (; n > 0; n -= kWidth, x += kWidth) f(n < kWidth ? load_part(x, n, padding) : load_packet(x));
}

}  // namespace troupe
