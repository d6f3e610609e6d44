// LayerNorm: every row, the last dimension, shifted and scaled to mean 0 and variance 1, then
// scaled and shifted again by parameters. The gradient measures its rows once more, which is
// cheaper than keeping what the forward pass has measured.
#include <vector>

#include "graph/gradient_through.hpp"
#include "ops/cuda/norm.hpp"
#include "ops/kernels/support/columns.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moments.hpp"
#include "ops/kernels/support/parameters.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/wide_row.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status check_epsilon(const InferenceContext& c) {
  if (c.float_attr("epsilon") >= 0) return ok_status();
  return invalid_argument("epsilon must not be negative");
}
Status layer_norm_shape(InferenceContext& c) {
  TROUPE_TRY(check_epsilon(c));
  TROUPE_TRY(last_dimension(c, 0, 1, 2));
  return same_shape(c);
}
Status layer_norm_grad_shape(InferenceContext& c) {
  TROUPE_TRY(check_epsilon(c));
  TROUPE_TRY(const PartialShape row, last_dimension(c, 1, 2, 2));
  TROUPE_TRY(PartialShape dx, PartialShape::merge(c.shape(0), c.shape(1)));
  c.set(0, std::move(dx));
  c.set(1, row);
  c.set(2, row);
  return ok_status();
}

std::vector<Output> layer_norm_grad(GradContext& c) {
  const Output dx =
      c.g.add("LayerNormGrad", {c.dy[0], c.x[0], c.x[1]}, {{"epsilon", c.float_attr("epsilon")}});
  return {dx, dx.sibling(1), dx.sibling(2)};
}

// LayerNormGrad as several nodes, for its own gradient. Of 16-bit floats in f32: f16 has no squares
// of what is 256 apart.
std::vector<Output> layer_norm_grad_grad(GradContext& c) {
  GraphBuilder& g = c.g;
  const double epsilon = c.float_attr("epsilon");
  const auto mean = [&](Output rows) {
    return g.add("Mean", {rows}, {{"axes", std::vector<std::int64_t>{-1}}, {"keep_dims", true}});
  };
  return gradient_through(c, [&](const std::vector<Output>& in) -> std::vector<Output> {
    const Output dy = wide(in[0]), x = wide(in[1]), scale = wide(in[2]);
    const Output apart = minus(x, mean(x)), variance = mean(multiply(apart, apart));
    const Output inverse = g.add("Rsqrt", {plus(variance, scalar_like(x, epsilon))});
    const Output y = multiply(apart, inverse), slope = multiply(dy, scale);
    const Output along = multiply(y, mean(multiply(slope, y)));
    const Output dx = multiply(minus(minus(slope, mean(slope)), along), inverse);
    const auto of_scale = [&](Output x) {
      return of_dtype(g.add("SumToShapeOf", {x, scale}), in[2].dtype());
    };
    return {of_dtype(dx, in[1].dtype()), of_scale(multiply(dy, y)), of_scale(dy)};
  });
}

Status wrong_shape(const KernelContext& c, std::string_view op) {
  std::string text = std::string(op) + ": the shapes of its inputs do not fit:";
  for (int i = 0; i < c.inputs(); ++i) text += " " + c.input(i).shape().text();
  return invalid_argument(text);
}

template <class T>
class LayerNorm final : public Kernel {
 public:
  using C = Compute<T>;
  explicit LayerNorm(const KernelSpec& spec) : epsilon_(C(spec.float_attr("epsilon"))) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    const std::int64_t n = x.rank() < 1 ? 0 : x.dim(x.rank() - 1);
    if (x.rank() < 1 || c.input(1).shape() != Shape{n} || c.input(2).shape() != Shape{n})
      return wrong_shape(c, "LayerNorm");
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    const T *in = x.data<T>(), *scale = c.input(1).data<T>(), *offset = c.input(2).data<T>();
    T* out = y.mutable_data<T>();
    const Chunks chunks = row_chunks(n == 0 ? 0 : x.elements() / n, n);
    c.parallel(chunks.count, [&](std::int64_t k) {
      WideRow<T> row, scale_row, offset_row;
      const C *gain = scale_row(scale, n), *shift = offset_row(offset, n);
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i) {
        const C* from = row(in + i * n, n);
        T* to = out + i * n;
        const Moments<C> moments = measure<C>(from, n, epsilon_);
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j)
          to[j] = T(moments.normal(from[j]) * gain[j] + shift[j]);
      }
    });
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  const C epsilon_;
};

// With h the normalised row, g = dy scale and means over the row:
//   dx = (g - mean(g) - h mean(g h)) inv_std,  dscale = sum of dy h,  doffset = sum of dy
template <class T>
class LayerNormGrad final : public Kernel {
 public:
  using C = Compute<T>;
  explicit LayerNormGrad(const KernelSpec& spec) : epsilon_(C(spec.float_attr("epsilon"))) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(1);
    const std::int64_t n = x.rank() < 1 ? 0 : x.dim(x.rank() - 1);
    if (x.rank() < 1 || c.input(0).shape() != x.shape() || c.input(2).shape() != Shape{n})
      return wrong_shape(c, "LayerNormGrad");
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    TROUPE_TRY(Tensor sums, c.allocate(dtype_of<C>, Shape{2, n}));
    const std::int64_t rows = n == 0 ? 0 : x.elements() / n;
    const T *dy = c.input(0).data<T>(), *in = x.data<T>(), *scale = c.input(2).data<T>();
    T* out = dx.mutable_data<T>();
    TROUPE_TRY(column_sums<C>(c, rows, n, 2 * n, sums.mutable_data<C>(), [&](Range r, C* sum) {
      WideRow<T> row, dy_row, scale_row;
      const C* gain = scale_row(scale, n);
      for (std::int64_t i = r.begin; i < r.end; ++i)
        step(dy_row(dy + i * n, n), row(in + i * n, n), gain, n, sum, sum + n, out + i * n);
    }));
    c.set_output(0, std::move(dx));
    for (int i = 0; i < 2; ++i) {
      TROUPE_TRY(Tensor sum, c.allocate(dtype_of<T>, Shape{n}));
      const C* total = sums.data<C>() + i * n;
      std::transform(total, total + n, sum.mutable_data<T>(), [](C value) { return T(value); });
      c.set_output(1 + i, std::move(sum));
    }
    return ok_status();
  }

 private:
  void step(const C* dy, const C* x, const C* scale, std::int64_t n, C* __restrict dscale,
            C* __restrict doffset, T* dx) const {
    const Moments<C> moments = measure<C>(x, n, epsilon_);
    const auto sums =
        two_row_sums<C, kMomentParts>(n, [&](std::int64_t j, C& slope, C& slope_along) {
          slope = dy[j] * scale[j];
          slope_along = slope * moments.normal(x[j]);
        });
    const C mean = sums.first / C(n), along = sums.second / C(n);
    const C inverse = moments.inverse, by = moments.by;
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) {
      const C h = moments.normal(x[j]), slope = dy[j];
      dscale[j] += slope * h;
      doffset[j] += slope;
      dx[j] = T((slope * scale[j] - mean - h * along) * inverse * by);
    }
  }

  const C epsilon_;
};

}  // namespace

TROUPE_OPS(layer_norm) {
  r.add({.name = "LayerNorm",
         .in = {"x", "scale", "offset"},
         .out = {"y"},
         .types = kFloats,
         .attrs = {"epsilon: float = 1e-05"},
         .shape = layer_norm_shape,
         .grad = layer_norm_grad,
         .doc = "y = (x - m) / sqrt(v + epsilon) * scale + offset, where m and v are the mean and "
                "variance of each row (the last dimension of x); scale and offset are rows, too."})
      .cpu(typed_kernel<LayerNorm, Floats>)
      .cuda(cuda::layer_norm);
  r.add({.name = "LayerNormGrad",
         .in = {"dy", "x", "scale"},
         .out = {"dx", "dscale", "doffset"},
         .types = kFloats,
         .attrs = {"epsilon: float = 1e-05"},
         .shape = layer_norm_grad_shape,
         .grad = layer_norm_grad_grad,
         .doc = "The gradients of LayerNorm, given the gradient of its output."})
      .cpu(typed_kernel<LayerNormGrad, Floats>)
      .cuda(cuda::layer_norm_grad);
}
