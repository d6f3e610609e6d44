#include "ops/kernels/support/grad.hpp"

#include "core/rounding.hpp"

namespace troupe {

Output scalar_const(GraphBuilder& g, DType dtype, double value) {
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
    case DType::c64:
      t = Tensor::scalar(std::complex<float>(float(value)));
      break;
    case DType::c128:
      t = Tensor::scalar(std::complex<double>(value));
      break;
    default:
      TROUPE_CHECK(false, "a constant of a gradient is a float, complex, i32 or i64");
  }
  return g.add("Const", {}, {{"T", dtype}, {"value", std::move(t)}});
}

Output i64_const(GraphBuilder& g, const std::vector<std::int64_t>& values) {
  auto t = Tensor::of<std::int64_t>(Shape{std::int64_t(values.size())}, values);
  return g.add("Const", {}, {{"T", DType::i64}, {"value", std::move(t)}});
}

Output conjugate(Output x) { return is_complex(x.dtype()) ? x.graph().add("Conj", {x}) : x; }

bool never_stretched(const PartialShape& x, const PartialShape& other) {
  if (!x.known_rank() || !other.known_rank() || x.rank() < other.rank()) return false;
  for (int d = 1; d <= other.rank(); ++d) {
    std::int64_t mine = x.dim(x.rank() - d), theirs = other.dim(other.rank() - d);
    bool kept = theirs == 1 || (mine != PartialShape::kUnknown && (mine != 1 || theirs == mine));
    if (!kept) return false;
  }
  return true;
}

Output unbroadcast(Output dy, Output x, Output other) {
  GraphBuilder& g = x.graph();
  if (never_stretched(x.shape(), other.shape())) return dy;
  if (x.shape().fully_known()) return g.add("SumToShape", {dy}, {{"shape", x.shape()}});
  return g.add("SumToShapeOf", {dy, x});
}

Output sum_to(Output x, Output y, Output dy) {
  if (x.shape().fully_known() && x.shape() == y.shape()) return dy;
  return x.graph().add("SumToShapeOf", {dy, x});
}

}  // namespace troupe
