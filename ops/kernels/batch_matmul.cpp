// BatchMatMul: many matrix products at once, over equal leading dimensions.
#include <algorithm>

#include "devices/chunks.hpp"
#include "ops/kernels/gemm.hpp"
#include "ops/kernels/typed.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status batch_matmul_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  TROUPE_TRY(c.want_rank_at_least(1, 2));
  const PartialShape &a = c.shape(0), &b = c.shape(1);
  if (!a.known_rank() || !b.known_rank()) {
    const PartialShape& known = a.known_rank() ? a : b;
    if (known.known_rank()) c.set(0, PartialShape::unknown_of_rank(known.rank()));
    return ok_status();
  }
  if (a.rank() != b.rank())
    return invalid_argument("a is " + a.text() + ", b is " + b.text() + ": ranks differ");
  const int r = a.rank(), rows = r - 2 + int(c.bool_attr("transpose_a"));
  const int cols = r - 1 - int(c.bool_attr("transpose_b"));
  PartialShape product = PartialShape::unknown_of_rank(r);
  for (int i = 0; i < r - 2; ++i) {
    TROUPE_TRY(PartialShape dim, PartialShape::merge(PartialShape{a[i]}, PartialShape{b[i]}));
    product.set_dim(i, dim[0]);
  }
  TROUPE_TRY(
      PartialShape::merge(PartialShape{a[2 * r - 3 - rows]}, PartialShape{b[2 * r - 3 - cols]}));
  product.set_dim(r - 2, a[rows]);
  product.set_dim(r - 1, b[cols]);
  c.set(0, std::move(product));
  return ok_status();
}

std::vector<Output> batch_matmul_grad(GradContext& c) {
  bool ta = c.bool_attr("transpose_a"), tb = c.bool_attr("transpose_b");
  auto product = [&](Output a, Output b, bool transpose_a, bool transpose_b) {
    return c.g.add("BatchMatMul", {a, b},
                   {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  };
  Output a = c.x[0], b = c.x[1], dc = c.dy[0];
  Output da = ta ? product(b, dc, tb, true) : product(dc, b, false, !tb);
  Output db = tb ? product(dc, a, true, ta) : product(a, dc, !ta, false);
  return {da, db};
}

template <class T>
class BatchMatMul final : public Kernel {
 public:
  explicit BatchMatMul(const KernelSpec& spec)
      : transpose_a_(spec.bool_attr("transpose_a")), transpose_b_(spec.bool_attr("transpose_b")) {}

  Status compute(KernelContext& c) override {
    const Tensor &a = c.input(0), &b = c.input(1);
    const int r = a.rank();
    auto misfit = [&] {
      return invalid_argument("BatchMatMul: a is " + a.shape().text() + ", b is " +
                              b.shape().text());
    };
    if (r < 2 || b.rank() != r) return misfit();
    Shape shape = a.shape();
    for (int i = 0; i < r - 2; ++i)
      if (a.dim(i) != b.dim(i)) return misfit();
    const std::int64_t m = a.dim(r - 2 + int(transpose_a_)), k = a.dim(r - 1 - int(transpose_a_));
    const std::int64_t n = b.dim(r - 1 - int(transpose_b_));
    if (b.dim(r - 2 + int(transpose_b_)) != k) return misfit();
    shape.set_dim(r - 2, m);
    shape.set_dim(r - 1, n);
    TROUPE_TRY(shape, Shape::make(shape.dims()));
    TROUPE_TRY(Tensor product, c.allocate(dtype_of<T>, shape));
    const std::int64_t count = shape.elements(0, r - 2);
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = product.mutable_data<T>();
    // Whole products: a chunk has about 12 MFLOP of them.
    const double flop = 2.0 * double(m) * double(n) * double(k);
    const auto each = std::int64_t(std::clamp(12e6 / std::max(flop, 1.0), 1.0, 1e6));
    const Chunks chunks = Chunks::of_step(count, each);
    TROUPE_TRY(parallel_chunks(c, chunks.count, [&](std::int64_t q) -> Status {
      for (std::int64_t i = chunks[q].begin; i < chunks[q].end; ++i)
        TROUPE_TRY(gemm<T>(m, n, k, {left + i * m * k, transpose_a_ ? m : k, transpose_a_},
                           {right + i * k * n, transpose_b_ ? k : n, transpose_b_}, false,
                           {out + i * m * n, n}));
      return ok_status();
    }));
    c.set_output(0, std::move(product));
    return ok_status();
  }

 private:
  const bool transpose_a_, transpose_b_;
};

}  // namespace

TROUPE_OPS(batch_matmul) {
  r.add({.name = "BatchMatMul",
         .in = {"a", "b"},
         .out = {"product"},
         .types = "f32 f64",
         .attrs = {"transpose_a: bool = false", "transpose_b: bool = false"},
         .shape = batch_matmul_shape,
         .grad = batch_matmul_grad,
         .contraction = true,
         .doc = "The matrix products of the last two dimensions of a [...,m,k] and b [...,k,n], "
                "whose leading dimensions are equal; MatMul for each."})
      .cpu(float_kernel<BatchMatMul>);
}
