// Bits of integers.
#include "ops/kernels/support/elementwise.hpp"

using namespace troupe;

namespace {

struct BitwiseAnd {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T a, T b) const {
    return T(a & b);
  }
};
struct BitwiseOr {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T a, T b) const {
    return T(a | b);
  }
};
struct BitwiseXor {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T a, T b) const {
    return T(a ^ b);
  }
};
struct Invert {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T x) const {
    return T(~x);
  }
};
// By a negative number of bits: by a very large one, as which it is seen without its sign.
struct LeftShift {
  static constexpr bool wraps = true;
  template <class T>
  T operator()(T x, T bits) const {
    return bits < T(8 * sizeof(T)) ? T(std::uint64_t(x) << bits) : T(0);
  }
};
struct RightShift {
  template <class T>
  T operator()(T x, T bits) const {
    const auto n = static_cast<std::make_unsigned_t<T>>(bits);
    if (n < 8 * sizeof(T)) return T(x >> n);
    return x < 0 ? T(-1) : T(0);
  }
};

OpDef of_bits(std::string name, std::vector<std::string> in, std::string doc) {
  const bool two = in.size() == 2;
  return {.name = std::move(name),
          .in = std::move(in),
          .out = {"y"},
          .types = "i8 i16 i32 i64 u8 u16 u32 u64",
          .shape = two ? broadcast_shape : same_shape,
          .no_gradient = "of integers",
          .elementwise = true,
          .doc = std::move(doc) + (two ? " The inputs broadcast." : "")};
}

}  // namespace

TROUPE_OPS(bitwise) {
  const auto commutative = [](OpDef def) {
    def.commutative = true;
    return def;
  };
  r.add(commutative(of_bits("BitwiseAnd", {"a", "b"}, "The bitwise and of a and b.")))
      .cpu(elementwise<BitwiseAnd, Integers>);
  r.add(commutative(of_bits("BitwiseOr", {"a", "b"}, "The bitwise or of a and b.")))
      .cpu(elementwise<BitwiseOr, Integers>);
  r.add(commutative(of_bits("BitwiseXor", {"a", "b"}, "The bitwise exclusive or of a and b.")))
      .cpu(elementwise<BitwiseXor, Integers>);
  r.add(of_bits("Invert", {"x"}, "The complement of x.")).cpu(elementwise<Invert, Integers>);
  r.add(of_bits("LeftShift", {"x", "bits"},
                "x shifted left by `bits`, filled with zeros. 0 if `bits` is negative or at least "
                "the width of the type."))
      .cpu(elementwise<LeftShift, Integers>);
  r.add(of_bits("RightShift", {"x", "bits"},
                "x shifted right by `bits`, keeping the sign. If `bits` is negative or at least "
                "the width of the type: -1 for a negative x, else 0."))
      .cpu(elementwise<RightShift, Integers>);
}
