// BatchMatMul: many matrix products at once, over leading dimensions that broadcast.
#include <algorithm>

#include "devices/chunks.hpp"
#include "ops/cuda/matmul.hpp"
#include "ops/kernels/support/broadcast.hpp"
#include "ops/kernels/support/complex_product.hpp"
#include "ops/kernels/support/gemm.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/half_product.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// The dimensions before the last two.
Shape leading(const Shape& shape) {
  return Shape(shape.dims().first(std::size_t(shape.rank() - 2)));
}
PartialShape leading(const PartialShape& shape) {
  PartialShape out = PartialShape::unknown_of_rank(shape.rank() - 2);
  for (int i = 0; i < out.rank(); ++i) out.set_dim(i, shape[i]);
  return out;
}

Status batch_matmul_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 2));
  TROUPE_TRY(c.want_rank_at_least(1, 2));
  const PartialShape &a = c.shape(0), &b = c.shape(1);
  if (!a.known_rank() || !b.known_rank()) return ok_status();
  const int rows = a.rank() - 2 + int(c.bool_attr("transpose_a"));
  const int cols = b.rank() - 1 - int(c.bool_attr("transpose_b"));
  TROUPE_TRY(PartialShape::merge(PartialShape{a[2 * a.rank() - 3 - rows]},
                                 PartialShape{b[2 * b.rank() - 3 - cols]}));
  const auto batches = broadcast(leading(a), leading(b));
  if (!batches.ok())
    return invalid_argument("a is " + a.text() + ", b is " + b.text() +
                            ": the dimensions before the last two do not broadcast");
  std::vector<std::int64_t> dims = batches->dims();
  dims.insert(dims.end(), {a[rows], b[cols]});
  TROUPE_TRY(PartialShape product, PartialShape::make(dims));
  c.set(0, std::move(product));
  return ok_status();
}

// d of input x, which was broadcast against `other`: summed over the products that x is in.
Output of_one(Output d, Output x, Output other) {
  const PartialShape &mine = x.shape(), &theirs = other.shape();
  if (mine.known_rank() && theirs.known_rank() && never_stretched(leading(mine), leading(theirs)))
    return d;
  if (mine.fully_known()) return d.graph().add("SumToShape", {d}, {{"shape", mine}});
  return d.graph().add("SumToShapeOf", {d, x});
}

std::vector<Output> batch_matmul_grad(GradContext& c) {
  bool ta = c.bool_attr("transpose_a"), tb = c.bool_attr("transpose_b");
  auto product = [&](Output a, Output b, bool transpose_a, bool transpose_b) {
    return c.g.add("BatchMatMul", {a, b},
                   {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  };
  Output a = conjugate(c.x[0]), b = conjugate(c.x[1]), dc = c.dy[0];
  Output da = ta ? product(b, dc, tb, true) : product(dc, b, false, !tb);
  Output db = tb ? product(dc, a, true, ta) : product(a, dc, !ta, false);
  return {of_one(da, a, b), of_one(db, b, a)};
}

template <class T>
class BatchMatMul final : public Kernel {
 public:
  explicit BatchMatMul(const KernelSpec& spec)
      : BatchMatMul(spec.bool_attr("transpose_a"), spec.bool_attr("transpose_b")) {}
  BatchMatMul(bool transpose_a, bool transpose_b)
      : transpose_a_(transpose_a), transpose_b_(transpose_b) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(Tensor y, product(c, c.input(0), c.input(1)));
    c.set_output(0, std::move(y));
    return ok_status();
  }

  static Status check(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b) {
    const int ra = a.rank(), rb = b.rank();
    if (ra >= 2 && rb >= 2 &&
        a.dim(ra - 1 - int(transpose_a)) == b.dim(rb - 2 + int(transpose_b))) {
      const Shape of_a = leading(a.shape()), of_b = leading(b.shape());
      if (Broadcast<2>::of({&of_a, &of_b}).ok()) return ok_status();
    }
    return invalid_argument("BatchMatMul: a is " + a.shape().text() + ", b is " + b.shape().text());
  }
  Expected<Tensor> product(const KernelContext& c, const Tensor& a, const Tensor& b) const {
    TROUPE_TRY(check(a, transpose_a_, b, transpose_b_));
    const int ra = a.rank(), rb = b.rank();
    const std::int64_t m = a.dim(ra - 2 + int(transpose_a_)), k = a.dim(ra - 1 - int(transpose_a_));
    const std::int64_t n = b.dim(rb - 1 - int(transpose_b_));
    const Shape of_a = leading(a.shape()), of_b = leading(b.shape());
    TROUPE_TRY(const auto meet, Broadcast<2>::of({&of_a, &of_b}));
    std::vector<std::int64_t> dims(meet.out().dims().begin(), meet.out().dims().end());
    dims.insert(dims.end(), {m, n});
    TROUPE_TRY(const Shape shape, Shape::make(dims));
    TROUPE_TRY(Tensor product, c.allocate(dtype_of<T>, shape));
    if (product.elements() == 0) return product;  // of any number of products
    const T *left = a.data<T>(), *right = b.data<T>();
    T* out = product.mutable_data<T>();
    // Whole products: a chunk has about 12 MFLOP of them.
    const double flop = 2.0 * double(m) * double(n) * double(k);
    const auto each = std::int64_t(std::clamp(12e6 / std::max(flop, 1.0), 1.0, 1e6));
    const Chunks chunks = Chunks::of_step(meet.elements(), each);
    TROUPE_TRY(parallel_chunks(c, chunks.count, [&](std::int64_t q) -> Status {
      Status status;
      meet.rows(chunks[q],
                [&](std::int64_t o, const auto& at, std::int64_t count, const auto& steps) {
                  for (std::int64_t i = 0; i < count && status.ok(); ++i)
                    status = one(c, m, n, k, left + (at[0] + i * steps[0]) * m * k,
                                 right + (at[1] + i * steps[1]) * k * n, out + (o + i) * m * n);
                });
      return status;
    }));
    return product;
  }

 private:
  Status one(const KernelContext& c, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
             const T* b, T* product) const {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
      return HalfProduct<T>{m, n, k, transpose_a_, transpose_b_}.run(c, a, b, product, true);
    else
      return gemm<T>(m, n, k, {a, transpose_a_ ? m : k, transpose_a_},
                     {b, transpose_b_ ? k : n, transpose_b_}, false, {product, n});
  }

  const bool transpose_a_, transpose_b_;
};

Expected<std::unique_ptr<Kernel>> batch_matmul_kernel(const KernelSpec& spec) {
  if (spec.type() == DType::c64)
    return std::unique_ptr<Kernel>(new ComplexProduct<BatchMatMul<float>>(spec));
  if (spec.type() == DType::c128)
    return std::unique_ptr<Kernel>(new ComplexProduct<BatchMatMul<double>>(spec));
  const bool half_size = spec.type() == DType::f16 || spec.type() == DType::bf16;
  return half_size ? half_product_kernel<BatchMatMul>(spec) : float_kernel<BatchMatMul>(spec);
}

}  // namespace

TROUPE_OPS(batch_matmul) {
  r.add({.name = "BatchMatMul",
         .in = {"a", "b"},
         .out = {"product"},
         .types = kFloatsAndComplex,
         .attrs = {"transpose_a: bool = false", "transpose_b: bool = false"},
         .shape = batch_matmul_shape,
         .grad = batch_matmul_grad,
         .contraction = true,
         .doc = "The matrix products of the last two dimensions of a [...,m,k] and b [...,k,n]; "
                "leading dimensions broadcast as in numpy.matmul. Each product is MatMul's."})
      .cpu(batch_matmul_kernel)
      .cuda(cuda::matmul);
}
