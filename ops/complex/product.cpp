#include "ops/complex/product.hpp"

#include <complex>
#include <limits>

#include "devices/chunks.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kMostDoubled = std::numeric_limits<std::int64_t>::max() / 4;

// f(matrix, i, j, z) for each element of the matrices of x, or of their transposes.
template <class R, class F>
void each_element(const KernelContext& ctx, const Tensor& x, bool transposed, F&& f) {
  const std::int64_t stored = x.dim(x.rank() - 2), width = x.dim(x.rank() - 1);
  const std::int64_t rows = transposed ? width : stored, columns = transposed ? stored : width;
  if (x.elements() == 0) return;
  const auto* in = x.data<std::complex<R>>();
  const Chunks chunks = row_chunks(x.elements() / columns, columns);
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    for (std::int64_t r = chunks[c].begin; r < chunks[c].end; ++r) {
      const std::int64_t matrix = r / rows, i = r % rows;
      const auto* row = in + matrix * rows * columns + (transposed ? i : i * columns);
      for (std::int64_t j = 0; j < columns; ++j) f(matrix, i, j, row[transposed ? j * width : j]);
    }
  });
}

Expected<Tensor> real_matrices(const KernelContext& ctx, const Tensor& x, bool transposed,
                               std::int64_t row_factor) {
  const int last = x.rank() - 1;
  std::vector<std::int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  if (transposed) std::swap(dims[std::size_t(last)], dims[std::size_t(last - 1)]);
  // Without elements there may be any number of rows.
  if (dims[std::size_t(last - 1)] > kMostDoubled || dims[std::size_t(last)] > kMostDoubled)
    return invalid_argument("matrices of " + x.shape().text() + " are too large");
  dims[std::size_t(last - 1)] *= row_factor;
  dims[std::size_t(last)] *= 2;
  TROUPE_TRY(const Shape shape, Shape::make(dims));
  return ctx.allocate(real_of(x.dtype()), shape);
}

template <class R>
Expected<Tensor> left(const KernelContext& ctx, const Tensor& a, bool transposed) {
  if (!transposed) {
    if (a.dim(a.rank() - 1) > kMostDoubled)
      return invalid_argument("matrices of " + a.shape().text() + " are too large");
    Shape shape = a.shape();
    shape.set_dim(a.rank() - 1, 2 * a.dim(a.rank() - 1));
    return Tensor(dtype_of<R>, shape, a.buffer(), a.offset());
  }
  TROUPE_TRY(Tensor y, real_matrices(ctx, a, true, 1));
  auto* out = static_cast<std::complex<R>*>(y.mutable_raw());
  const std::int64_t m = a.dim(a.rank() - 1), k = a.dim(a.rank() - 2);
  each_element<R>(ctx, a, true, [=](std::int64_t matrix, std::int64_t i, std::int64_t j, auto z) {
    out[(matrix * m + i) * k + j] = z;
  });
  return y;
}

template <class R>
Expected<Tensor> right(const KernelContext& ctx, const Tensor& b, bool transposed) {
  TROUPE_TRY(Tensor y, real_matrices(ctx, b, transposed, 2));
  R* out = y.mutable_data<R>();
  const std::int64_t k = b.dim(b.rank() - (transposed ? 1 : 2));
  const std::int64_t n = b.dim(b.rank() - (transposed ? 2 : 1));
  each_element<R>(ctx, b, transposed,
                  [=](std::int64_t matrix, std::int64_t i, std::int64_t j, auto z) {
                    R* first = out + (matrix * k + i) * 4 * n + 2 * j;
                    R* second = first + 2 * n;
                    first[0] = second[1] = z.real();
                    first[1] = z.imag();
                    second[0] = -z.imag();
                  });
  return y;
}

}  // namespace

Expected<Tensor> complex_left(const KernelContext& ctx, const Tensor& a, bool transposed) {
  return a.dtype() == DType::c64 ? left<float>(ctx, a, transposed)
                                 : left<double>(ctx, a, transposed);
}
Expected<Tensor> complex_right(const KernelContext& ctx, const Tensor& b, bool transposed) {
  return b.dtype() == DType::c64 ? right<float>(ctx, b, transposed)
                                 : right<double>(ctx, b, transposed);
}

Tensor complex_product(const Tensor& product) {
  Shape shape = product.shape();
  shape.set_dim(product.rank() - 1, product.dim(product.rank() - 1) / 2);
  return Tensor(complex_of(product.dtype()), shape, product.buffer(), product.offset());
}

}  // namespace troupe
