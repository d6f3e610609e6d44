// Bits of integers.
#include "ops/formulas/bitwise.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/kernels/support/elementwise.hpp"

using namespace troupe;

namespace {

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
      .cpu(elementwise<formula::BitwiseAnd, Integers>)
      .cuda(cuda::elementwise<formula::BitwiseAnd>);
  r.add(commutative(of_bits("BitwiseOr", {"a", "b"}, "The bitwise or of a and b.")))
      .cpu(elementwise<formula::BitwiseOr, Integers>)
      .cuda(cuda::elementwise<formula::BitwiseOr>);
  r.add(commutative(of_bits("BitwiseXor", {"a", "b"}, "The bitwise exclusive or of a and b.")))
      .cpu(elementwise<formula::BitwiseXor, Integers>)
      .cuda(cuda::elementwise<formula::BitwiseXor>);
  r.add(of_bits("Invert", {"x"}, "The complement of x."))
      .cpu(elementwise<formula::Invert, Integers>)
      .cuda(cuda::elementwise<formula::Invert>);
  r.add(of_bits("LeftShift", {"x", "bits"},
                "x shifted left by `bits`, filled with zeros. 0 if `bits` is negative or at least "
                "the width of the type."))
      .cpu(elementwise<formula::LeftShift, Integers>)
      .cuda(cuda::elementwise<formula::LeftShift>);
  r.add(of_bits("RightShift", {"x", "bits"},
                "x shifted right by `bits`, keeping the sign. If `bits` is negative or at least "
                "the width of the type: -1 for a negative x, else 0."))
      .cpu(elementwise<formula::RightShift, Integers>)
      .cuda(cuda::elementwise<formula::RightShift>);
}
