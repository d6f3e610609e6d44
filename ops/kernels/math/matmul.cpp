// MatMul: the product of two matrices, either of them transposed on the way; and MatMul with what
// follows on it.
#include "ops/cuda/matmul.hpp"
#include "devices/chunks.hpp"
#include "ops/detail/matmul_sizes.hpp"
#include "ops/kernels/support/bias.hpp"
#include "ops/kernels/support/complex_product.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/half_product.hpp"
#include "ops/kernels/support/packed_product.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/kernels/support/typed.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Expected<PartialShape> product_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 2));
  TROUPE_TRY(c.want_rank(1, 2));
  PartialShape a = c.shape(0), b = c.shape(1), product = PartialShape::unknown_of_rank(2);
  int rows = c.bool_attr("transpose_a") ? 1 : 0, cols = c.bool_attr("transpose_b") ? 0 : 1;
  if (a.known_rank()) product.set_dim(0, a[rows]);
  if (b.known_rank()) product.set_dim(1, b[cols]);
  if (a.known_rank() && b.known_rank() && a.known(1 - rows) && b.known(1 - cols) &&
      a[1 - rows] != b[1 - cols])
    return detail::inner_dimensions_differ(a.text(), rows == 1, b.text(), cols == 0);
  return product;
}

Status matmul_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape product, product_shape(c));
  c.set(0, std::move(product));
  return ok_status();
}

Status matmul_bias_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(2, 1));
  TROUPE_TRY(PartialShape product, product_shape(c));
  TROUPE_TRY(product, detail::with_bias(std::move(product), c.shape(2)));
  c.set(0, std::move(product));
  return ok_status();
}

// With op(a) = A and op(b) = B: dA = dC B^T, dB = A^T dC, each transposed where its operand was. Of
// complex numbers A and B are the conjugates there.
std::vector<Output> matmul_grad(GradContext& c) {
  bool ta = c.bool_attr("transpose_a"), tb = c.bool_attr("transpose_b");
  auto product = [&](Output a, Output b, bool transpose_a, bool transpose_b) {
    return c.g.add("MatMul", {a, b}, {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}});
  };
  Output a = conjugate(c.x[0]), b = conjugate(c.x[1]), dc = c.dy[0];
  Output da = ta ? product(b, dc, tb, true) : product(dc, b, false, !tb);
  Output db = tb ? product(dc, a, true, ta) : product(a, dc, !ta, false);
  return {da, db};
}

template <class T>
class MatMulKernel final : public Kernel {
 public:
  explicit MatMulKernel(const KernelSpec& spec)
      : MatMulKernel(spec.bool_attr("transpose_a"), spec.bool_attr("transpose_b")) {}
  MatMulKernel(bool transpose_a, bool transpose_b)
      : transpose_a_(transpose_a), transpose_b_(transpose_b) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(Tensor y, product(c, c.input(0), c.input(1)));
    c.set_output(0, std::move(y));
    return ok_status();
  }

  static Status check(const Tensor& a, bool transpose_a, const Tensor& b, bool transpose_b) {
    return detail::as_status(detail::matmul_sizes(a.shape(), transpose_a, b.shape(), transpose_b));
  }
  Expected<Tensor> product(const KernelContext& c, const Tensor& a, const Tensor& b) {
    TROUPE_TRY(const auto sizes,
               detail::matmul_sizes(a.shape(), transpose_a_, b.shape(), transpose_b_));
    const auto [m, n, k] = sizes;
    TROUPE_TRY(Shape shape, Shape::make(std::array{m, n}));
    TROUPE_TRY(Tensor product, c.allocate(dtype_of<T>, shape));
    TROUPE_TRY(run(c, m, n, k, a.data<T>(), b.data<T>(), product.mutable_data<T>()));
    return product;
  }

 private:
  Status run(const KernelContext& c, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
             const T* b, T* product) {
    if constexpr (std::is_same_v<T, half> || std::is_same_v<T, bfloat16>)
      return HalfProduct<T>{m, n, k, transpose_a_, transpose_b_}.run(c, a, b, product, false);
    else
      return split(c, m, n, k, a, b, product);
  }

  Status split(const KernelContext& c, std::int64_t m, std::int64_t n, std::int64_t k, const T* a,
               const T* b, T* product) {
    Matrix<const T> left{a, transpose_a_ ? m : k, transpose_a_};
    Matrix<const T> right{b, transpose_b_ ? k : n, transpose_b_};
    const GemmChunks parts = gemm_chunks(m, n, k);
    if (PackedProduct<T>::kPacks && parts.by_rows && parts.chunks.count > 1 && !transpose_a_)
      return by_rows(c, parts.chunks.count, {.m = m, .n = n, .k = k, .lda = k, .ldc = n}, a, right,
                     product);
    return parallel_chunks(c, parts.chunks.count, [&](std::int64_t i) {
      const Range r = parts.chunks[i];
      Matrix<const T> part_a = left, part_b = right;
      if (parts.by_rows) {
        part_a.data += transpose_a_ ? r.begin : r.begin * k;
        return gemm<T>(r.size(), n, k, part_a, part_b, false, {product + r.begin * n, n});
      }
      part_b.data += transpose_b_ ? r.begin * k : r.begin;
      return gemm<T>(m, r.size(), k, part_a, part_b, false, {product + r.begin, n});
    });
  }

  // The right operand is packed once for all ranges of rows, which else would each do that anew.
  Status by_rows(const KernelContext& c, std::int64_t count, ProductSizes sizes, const T* a,
                 Matrix<const T> b, T* product) {
    const std::int64_t rows = sizes.m;
    const Chunks chunks = Chunks::of_step(rows, (rows / count + 7) / 8 * 8);
    const std::int64_t last = chunks[chunks.count - 1].size();
    sizes.m = chunks[0].size();
    TROUPE_TRY(const auto whole, products_.get(sizes));
    auto rest = whole;
    if (last != sizes.m) {
      sizes.packed_for = std::exchange(sizes.m, last);
      TROUPE_TRY(rest, products_.get(sizes));
    }
    TROUPE_TRY(Tensor packed, scratch(c, whole->packed_bytes()));
    TROUPE_TRY(pack(c, *whole, sizes, b, packed.mutable_raw()));
    return parallel_chunks(c, chunks.count, [&](std::int64_t i) -> Status {
      const Range r = chunks[i];
      const auto& part = i + 1 == chunks.count ? *rest : *whole;
      TROUPE_TRY(Tensor own, scratch(c, part.scratch_bytes()));
      return part.run(a + r.begin * sizes.k, packed.raw(), product + r.begin * sizes.n,
                      own.mutable_raw());
    });
  }

  // A transposed operand is turned by all lanes first: packing is the work of one.
  static Status pack(const KernelContext& c, const PackedProduct<T>& product,
                     const ProductSizes& sizes, Matrix<const T> b, void* packed) {
    if (!b.transpose) return product.pack(b, packed);
    TROUPE_TRY(Tensor turned, c.allocate(dtype_of<T>, Shape{sizes.k, sizes.n}));
    T* out = turned.mutable_data<T>();
    const Chunks chunks = row_chunks(sizes.k, sizes.n);
    c.parallel(chunks.count, [&](std::int64_t i) {
      const Range r = chunks[i];
      constexpr std::int64_t kTile = 16;  // whole lines of cache of either side
      for (std::int64_t first = 0; first < sizes.n; first += kTile)
        for (std::int64_t p = r.begin; p < r.end; ++p)
          for (std::int64_t j = first; j < std::min(first + kTile, sizes.n); ++j)
            out[p * sizes.n + j] = b.data[j * b.stride + p];
    });
    return product.pack({out, sizes.n}, packed);
  }

  static Expected<Tensor> scratch(const KernelContext& c, std::size_t bytes) {
    return c.allocate(DType::u8, Shape{std::int64_t(bytes)});
  }

  bool transpose_a_, transpose_b_;
  PackedProducts<T> products_;
};

// The bits of MatMul, BiasAdd and Relu; f16 and bf16 are computed as f32 and rounded once.
template <class T>
class MatMulBias final : public Kernel {
 public:
  explicit MatMulBias(const KernelSpec& spec) : product_(spec), relu_(spec.bool_attr("relu")) {}

  Status compute(KernelContext& c) override {
    TROUPE_TRY(Tensor y, product_.product(c, c.input(0), c.input(1)));
    TROUPE_TRY(add_bias<T>(c, c.input(2), relu_, y));
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  MatMulKernel<T> product_;
  const bool relu_;
};

Expected<std::unique_ptr<Kernel>> matmul_bias_kernel(const KernelSpec& spec) {
  return through_float_kernel<MatMulBias>(spec.type(), spec);
}

Expected<std::unique_ptr<Kernel>> matmul_kernel(const KernelSpec& spec) {
  switch (spec.type()) {
    case DType::i32:
      return std::unique_ptr<Kernel>(new MatMulKernel<std::int32_t>(spec));
    case DType::i64:
      return std::unique_ptr<Kernel>(new MatMulKernel<std::int64_t>(spec));
    case DType::f16:
    case DType::bf16:
      return half_product_kernel<MatMulKernel>(spec);
    case DType::c64:
      return std::unique_ptr<Kernel>(new ComplexProduct<MatMulKernel<float>>(spec));
    case DType::c128:
      return std::unique_ptr<Kernel>(new ComplexProduct<MatMulKernel<double>>(spec));
    default:
      return float_kernel<MatMulKernel>(spec);
  }
}

}  // namespace

TROUPE_OPS(matmul) {
  r.add({.name = "MatMul",
         .in = {"a", "b"},
         .out = {"product"},
         .types = "f32 f64 f16 bf16 i32 i64 c64 c128",
         .attrs = {"transpose_a: bool = false", "transpose_b: bool = false"},
         .shape = matmul_shape,
         .grad = matmul_grad,
         .contraction = true,
         .doc = "The matrix product of a [m,k] and b [k,n]; transpose_a and transpose_b state that "
                "an operand is stored transposed. k = 0 gives zeros. f16 and bf16 are summed in "
                "f32 and rounded once; on AVX-512, subnormal elements and sums of bf16 count as 0. "
                "Integers wrap around."})
      .cpu(matmul_kernel)
      .cuda(cuda::matmul);
  r.add({.name = "_MatMulBias",
         .in = {"a", "b", "bias"},
         .out = {"product"},
         .types = kFloats,
         .attrs = {"transpose_a: bool = false", "transpose_b: bool = false", "relu: bool = false"},
         .shape = matmul_bias_shape,
         .no_gradient = "made of ops whose gradients were taken before",
         .contraction = true,
         .doc = "MatMul, BiasAdd and, with `relu`, Relu: what a step that is compiled for a GPU "
                "has in their place."})
      .cpu(matmul_bias_kernel)
      .cuda(cuda::matmul);
}
