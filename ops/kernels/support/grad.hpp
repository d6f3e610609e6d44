// What gradient functions share.
#pragma once

#include <vector>

#include "core/rounding.hpp"
#include "ops/op.hpp"

namespace troupe {

// A scalar Const of that dtype.
inline Output scalar_const(GraphBuilder& g, DType dtype, double value) {
  Tensor t;
  switch (dtype) {
    case DType::f32:
      t = Tensor::scalar(float(value));
      break;
    case DType::f64:
      t = Tensor::scalar(value);
      break;
    case DType::f16:
      t = Tensor::scalar(rounded<half>(value));
      break;
    case DType::bf16:
      t = Tensor::scalar(rounded<bfloat16>(value));
      break;
    case DType::i32:
      t = Tensor::scalar(std::int32_t(value));
      break;
    case DType::i64:
      t = Tensor::scalar(std::int64_t(value));
      break;
    default:
      TROUPE_CHECK(false, "a constant of a gradient is a float, i32 or i64");
  }
  return g.add("Const", {}, {{"T", dtype}, {"value", std::move(t)}});
}
inline Output scalar_like(Output x, double value) {
  return scalar_const(x.graph(), x.dtype(), value);
}
inline Output i64_const(GraphBuilder& g, const std::vector<std::int64_t>& values) {
  auto t = Tensor::of<std::int64_t>(Shape{std::int64_t(values.size())}, values);
  return g.add("Const", {}, {{"T", DType::i64}, {"value", std::move(t)}});
}

// Arithmetic on graph values, for gradients of several nodes.
inline Output plus(Output a, Output b) { return a.graph().add("Add", {a, b}); }
inline Output minus(Output a, Output b) { return a.graph().add("Sub", {a, b}); }
inline Output multiply(Output a, Output b) { return a.graph().add("Mul", {a, b}); }
inline Output divide(Output a, Output b) { return a.graph().add("Div", {a, b}); }
inline Output negate(Output x) { return x.graph().add("Neg", {x}); }
inline Output twice(Output x) { return plus(x, x); }
// a where the condition holds, else b.
inline Output where(Output condition, Output a, Output b) {
  return a.graph().add("Select", {condition, a, b});
}

// True when broadcasting `x` with `other` is known to leave x's shape as it is.
inline bool never_stretched(const PartialShape& x, const PartialShape& other) {
  if (!x.known_rank() || !other.known_rank() || x.rank() < other.rank()) return false;
  for (int d = 1; d <= other.rank(); ++d) {
    std::int64_t mine = x.dim(x.rank() - d), theirs = other.dim(other.rank() - d);
    bool kept = theirs == 1 || (mine != PartialShape::kUnknown && (mine != 1 || theirs == mine));
    if (!kept) return false;
  }
  return true;
}

// The gradient of input x of an op that broadcast it against `other`: `dy`, of the broadcast shape,
// summed over what was stretched. No node where the shapes say that nothing was.
inline Output unbroadcast(Output dy, Output x, Output other) {
  GraphBuilder& g = x.graph();
  if (never_stretched(x.shape(), other.shape())) return dy;
  if (x.shape().fully_known()) return g.add("SumToShape", {dy}, {{"shape", x.shape()}});
  return g.add("SumToShapeOf", {dy, x});
}

}  // namespace troupe
