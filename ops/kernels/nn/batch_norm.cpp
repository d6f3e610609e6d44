// FusedBatchNorm: every channel, the last dimension, shifted and scaled to mean 0 and variance 1,
// then scaled and shifted again by parameters. A variance from sums of squares would lose its
// digits where the mean is large: blocks of rows have a mean of their own.
//
// Of a channel with squares that overflow, though its values do not, the statistics are those of
// the values times a power of two.
#include <cmath>
#include <vector>

#include "ops/cuda/norm.hpp"
#include "ops/kernels/support/columns.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moments.hpp"
#include "ops/kernels/support/parameters.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status batch_norm_shape(InferenceContext& c) {
  if (!(c.float_attr("epsilon") >= 0)) return invalid_argument("epsilon must not be negative");
  TROUPE_TRY(const PartialShape channels,
             last_dimension(c, 0, 1, c.bool_attr("is_training") ? 2 : 4));
  c.set(0, c.shape(0));
  for (int i = 1; i < 4; ++i) c.set(i, channels);
  return ok_status();
}

Status batch_norm_grad_shape(InferenceContext& c) {
  TROUPE_TRY(const PartialShape channels, last_dimension(c, 1, 2, 7));
  TROUPE_TRY(PartialShape dx, PartialShape::merge(c.shape(0), c.shape(1)));
  c.set(0, std::move(dx));
  c.set(1, channels);
  c.set(2, channels);
  return ok_status();
}

std::vector<Output> batch_norm_grad(GradContext& c) {
  Output dx = c.g.add("FusedBatchNormGrad",
                      {c.dy[0], c.x[0], c.x[1], c.y[1], c.y[3], c.dy[1], c.dy[2], c.dy[3]},
                      {{"is_training", c.bool_attr("is_training")}});
  return {dx, dx.sibling(1), dx.sibling(2), Output(), Output()};
}

// The number of rows, as a scalar.
Output count_rows(Output x, Output channels) {
  auto size = [](Output t) {
    return t.graph().add("Cast", {t.graph().add("Size", {t})}, {{"to", t.dtype()}});
  };
  return divide(size(x), size(channels));
}

// The gradient of FusedBatchNormGrad, whose formulas stand at its kernel. With c = x - mean,
// D = sum(dy c), U = sum(u c), s = inv_std, and u, p and q arriving at dx, dscale and doffset, what
// is differentiated is
//   sum(u dx) + p dscale + q doffset
//     = scale s sum(u dy) + b U + (dmean - scale s sum(dy)) / N sum(u) + p s D + q sum(dy)
//   b = 2 dvariance / (N-1) - s^3 (scale D + dinv_std) / N
// and without what N divides where the statistics were inputs.
std::vector<Output> batch_norm_grad_grad(GradContext& c) {
  const bool training = c.bool_attr("is_training");
  const Output dy = c.x[0], x = c.x[1], scale = c.x[2], mean = c.x[3], s = c.x[4];
  const Output dvariance = c.x[6], dinv = c.x[7], u = c.dy[0], p = c.dy[1], q = c.dy[2];
  auto sum = [&](Output rows) { return c.g.add("BiasAddGrad", {rows}); };
  const Output centred = minus(x, mean), gain = multiply(scale, s);
  const Output sum_dy = sum(dy), sum_u_dy = sum(multiply(u, dy)), d = sum(multiply(dy, centred));
  Output by_dy = plus(multiply(u, gain), q), by_centred = multiply(p, s);
  Output by_scale = multiply(s, sum_u_dy), by_s = plus(multiply(scale, sum_u_dy), multiply(p, d));
  if (!training) {
    by_dy = plus(by_dy, multiply(centred, by_centred));
    Output by_mean = negate(multiply(by_centred, sum_dy));
    return {by_dy, multiply(dy, by_centred), by_scale, by_mean, by_s, Output(), Output(), Output()};
  }
  const Output one = scalar_like(x, 1), rows = count_rows(x, scale);
  const Output n = c.g.add("Maximum", {rows, one});
  const Output less_one = c.g.add("Maximum", {minus(rows, one), one});
  const Output sum_u = divide(sum(u), n), spread = divide(sum(multiply(u, centred)), n);  // U / N
  const Output squared = multiply(s, s), cubed = multiply(squared, s);
  const Output inner = plus(multiply(scale, d), dinv), u_dy = multiply(sum_u, sum_dy);
  const Output b = minus(divide(twice(dvariance), less_one), divide(multiply(cubed, inner), n));
  by_centred = minus(by_centred, multiply(multiply(spread, cubed), scale));
  by_dy = plus(minus(by_dy, multiply(sum_u, gain)), multiply(centred, by_centred));
  const Output by_x = plus(multiply(u, b), multiply(dy, by_centred));
  const Output by_mean =
      negate(plus(multiply(multiply(b, sum_u), n), multiply(by_centred, sum_dy)));
  by_scale = minus(by_scale, plus(multiply(multiply(spread, cubed), d), multiply(s, u_dy)));
  const Output three = scalar_like(x, 3);
  by_s = minus(by_s, plus(multiply(multiply(multiply(spread, squared), three), inner),
                          multiply(scale, u_dy)));
  const Output by_dvariance = divide(twice(multiply(spread, n)), less_one);
  return {by_dy, by_x,  by_scale,     by_mean,
          by_s,  sum_u, by_dvariance, negate(multiply(spread, cubed))};
}

Status want_channels(const KernelContext& c, int first, int last, std::int64_t n) {
  for (int i = first; i <= last; ++i)
    if (!(c.input(i).shape() == Shape{n}))
      return invalid_argument("input " + std::to_string(i) + " of a batch norm over " +
                              std::to_string(n) + " channels is " + c.input(i).shape().text());
  return ok_status();
}

template <class T>
class FusedBatchNorm final : public Kernel {
 public:
  explicit FusedBatchNorm(const KernelSpec& spec)
      : epsilon_(T(spec.float_attr("epsilon"))), training_(spec.bool_attr("is_training")) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    if (x.rank() < 1) return invalid_argument("a batch norm wants at least one dimension");
    const std::int64_t n = x.dim(x.rank() - 1), rows = n == 0 ? 0 : x.elements() / n;
    TROUPE_TRY(want_channels(c, 1, training_ ? 2 : 4, n));
    TROUPE_TRY(Tensor mean, c.allocate(dtype_of<T>, Shape{n}));
    TROUPE_TRY(Tensor variance, c.allocate(dtype_of<T>, Shape{n}));
    TROUPE_TRY(Tensor inv_std, c.allocate(dtype_of<T>, Shape{n}));
    T *m = mean.mutable_data<T>(), *v = variance.mutable_data<T>();
    T* s = inv_std.mutable_data<T>();
    const bool measured = training_ && rows > 0;
    if (measured) {
      TROUPE_TRY(statistics(c, x.data<T>(), rows, n, m, v));
    } else {
      TROUPE_TRY(want_channels(c, 3, 4, n));
      std::copy_n(c.input(3).data<T>(), n, m);
      std::copy_n(c.input(4).data<T>(), n, v);
    }
    for (std::int64_t j = 0; j < n; ++j) s[j] = T(1) / std::sqrt(v[j] + epsilon_);
    std::vector<Large> large;
    if (measured) {  // handed out without bias, for moving averages
      const T unbiased = T(rows) / T(std::max<std::int64_t>(rows - 1, 1));
      for (std::int64_t j = 0; j < n; ++j) v[j] *= unbiased;
      for (std::int64_t j = 0; j < n; ++j)
        if (!std::isfinite(m[j]) || !std::isfinite(v[j]))
          measure_large(x.data<T>(), rows, n, j, m[j], v[j], s[j], large);
    }
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    normalise(c, x.data<T>(), rows, n, m, s, y.mutable_data<T>(), large);
    c.set_output(0, std::move(y));
    c.set_output(1, std::move(mean));
    c.set_output(2, std::move(variance));
    c.set_output(3, std::move(inv_std));
    return ok_status();
  }

 private:
  // The mean and the variance of blocks of rows, each read twice while it is in the cache, are
  // joined pairwise (Chan, Golub and LeVeque, 1979).
  static Status statistics(const KernelContext& c, const T* x, std::int64_t rows, std::int64_t n,
                           T* mean, T* variance) {
    const Chunks blocks = column_sum_leaves(rows, n);
    TROUPE_TRY(Tensor parts, Tensor::zeros(dtype_of<T>, Shape{blocks.count, 3 * n}, c.allocator()));
    T* part = parts.mutable_data<T>();
    c.parallel(blocks.count, [&](std::int64_t i) {
      T* block = part + i * 3 * n;
      block_statistics(x, blocks[i], n, block, block + n, block + 2 * n);
    });
    std::vector<T> counts;
    for (std::int64_t i = 0; i < blocks.count; ++i) counts.push_back(T(blocks[i].size()));
    tree_sum(blocks.count, [&](std::int64_t to, std::int64_t from) {
      T &to_count = counts[std::size_t(to)], from_count = counts[std::size_t(from)];
      const T both = to_count + from_count, share = from_count / both, weight = to_count * share;
      T* __restrict a = part + to * 3 * n;
      const T* __restrict b = part + from * 3 * n;
      for (std::int64_t j = 0; j < n; ++j) {
        const T apart = b[j] - a[j];
        a[j] += apart * share;
        a[n + j] += b[n + j] + apart * apart * weight;
      }
      to_count = both;
    });
    std::copy_n(part, n, mean);
    for (std::int64_t j = 0; j < n; ++j) variance[j] = part[n + j] / T(rows);
    return ok_status();
  }

  // Into zeros; of the variance the sum that it is the mean of. What the first mean misses, since
  // its sum was rounded, is the mean of what is apart from it.
  static void block_statistics(const T* x, Range rows, std::int64_t n, T* mean, T* squares,
                               T* missed) {
    const T count = T(rows.size());
    add_terms(rows, n, mean, [=](std::int64_t i, std::int64_t j) { return x[i * n + j]; });
    for (std::int64_t j = 0; j < n; ++j) mean[j] /= count;
    add_terms_and_squares(rows, n, missed, squares,
                          [=](std::int64_t i, std::int64_t j) { return x[i * n + j] - mean[j]; });
    for (std::int64_t j = 0; j < n; ++j) {
      const T rest = missed[j] / count;
      mean[j] += rest;
      squares[j] = std::max(squares[j] - missed[j] * rest, T(0));
    }
  }

  // A channel that is measured, and normalised, as its values times `scale`.
  struct Large {
    std::int64_t channel;
    T scale;
  };
  // Not where a value is infinite or NaN: its statistics are NaN.
  void measure_large(const T* x, std::int64_t rows, std::int64_t n, std::int64_t j, T& mean,
                     T& variance, T& inv_std, std::vector<Large>& large) const {
    std::vector<T> channel;
    for (std::int64_t i = 0; i < rows; ++i) channel.push_back(x[i * n + j]);
    const Moments<T> moments = measure(channel.data(), rows, epsilon_);
    const T by = moments.by;
    if (!std::isfinite(moments.variance)) return;
    mean = moments.mean / by;
    variance = moments.variance / by / by * (T(rows) / T(std::max<std::int64_t>(rows - 1, 1)));
    inv_std = moments.inv_std();
    large.push_back({j, by});
  }

  static void normalise(const KernelContext& c, const T* x, std::int64_t rows, std::int64_t n,
                        const T* mean, const T* inv_std, T* y, const std::vector<Large>& large) {
    const T *scale = c.input(1).data<T>(), *offset = c.input(2).data<T>();
    const Chunks chunks = row_chunks(rows, n);
    c.parallel(chunks.count, [&](std::int64_t k) {
      std::vector<T> large_values(large.size());  // y may be x
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i) {
        const T* from = x + i * n;
        T* to = y + i * n;
        for (std::size_t l = 0; l < large.size(); ++l) {
          const auto [j, by] = large[l];
          large_values[l] =
              (from[j] * by - mean[j] * by) * (inv_std[j] / by) * scale[j] + offset[j];
        }
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j)
          to[j] = (from[j] - mean[j]) * (inv_std[j] * scale[j]) + offset[j];
        for (std::size_t l = 0; l < large.size(); ++l) to[large[l].channel] = large_values[l];
      }
    });
  }

  const T epsilon_;
  const bool training_;
};

// With h = (x - mean) inv_std over N rows:
//   doffset = sum dy, dscale = sum dy h
//   dx = scale inv_std (dy - doffset/N - h dscale/N) + what arrives at the statistics themselves
// and dx = scale inv_std dy where the statistics were inputs.
template <class T>
class FusedBatchNormGrad final : public Kernel {
 public:
  explicit FusedBatchNormGrad(const KernelSpec& spec) : training_(spec.bool_attr("is_training")) {}

  Status compute(KernelContext& c) override {
    const Tensor &dy = c.input(0), &x = c.input(1);
    if (x.rank() < 1 || !(dy.shape() == x.shape()))
      return invalid_argument("dy is " + dy.shape().text() + ", x is " + x.shape().text());
    const std::int64_t n = x.dim(x.rank() - 1), rows = n == 0 ? 0 : x.elements() / n;
    TROUPE_TRY(want_channels(c, 2, 7, n));
    TROUPE_TRY(Tensor sums, c.allocate(dtype_of<T>, Shape{2, n}));
    TROUPE_TRY(sum(c, dy.data<T>(), x.data<T>(), rows, n, sums.mutable_data<T>()));
    const T *doffset = sums.data<T>(), *dscale = doffset + n;
    TROUPE_TRY(Tensor out_scale, c.allocate(dtype_of<T>, Shape{n}));
    TROUPE_TRY(Tensor out_offset, c.allocate(dtype_of<T>, Shape{n}));
    std::copy_n(dscale, n, out_scale.mutable_data<T>());
    std::copy_n(doffset, n, out_offset.mutable_data<T>());
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    TROUPE_TRY(input_gradient(c, rows, n, doffset, dscale, dx.mutable_data<T>()));
    c.set_output(0, std::move(dx));
    c.set_output(1, std::move(out_scale));
    c.set_output(2, std::move(out_offset));
    return ok_status();
  }

 private:
  // {sum dy, sum dy h}
  static Status sum(const KernelContext& c, const T* dy, const T* x, std::int64_t rows,
                    std::int64_t n, T* sums) {
    const T *mean = c.input(3).data<T>(), *inv_std = c.input(4).data<T>();
    return column_sums<T>(c, rows, n, 2 * n, sums, [&](Range r, T* __restrict to) {
      add_terms(r, n, to, [=](std::int64_t i, std::int64_t j) { return dy[i * n + j]; });
      add_terms(r, n, to + n, [=](std::int64_t i, std::int64_t j) {
        return dy[i * n + j] * ((x[i * n + j] - mean[j]) * inv_std[j]);
      });
    });
  }

  // dx = a dy + b (x - mean) e + k, with four numbers per channel. The square of s is no normal
  // number where values are large; of such a channel e is s, and else 1.
  Status input_gradient(const KernelContext& c, std::int64_t rows, std::int64_t n, const T* doffset,
                        const T* dscale, T* dx) const {
    TROUPE_TRY(Tensor factors, Tensor::zeros(dtype_of<T>, Shape{4, n}, c.allocator()));
    T *a = factors.mutable_data<T>(), *b = a + n, *k = b + n, *e = k + n;
    const T *scale = c.input(2).data<T>(), *mean = c.input(3).data<T>();
    const T *s = c.input(4).data<T>(), *dmean = c.input(5).data<T>();
    const T *dvariance = c.input(6).data<T>(), *dinv = c.input(7).data<T>();
    const T count = T(std::max<std::int64_t>(rows, 1));
    const T less_one = T(std::max<std::int64_t>(rows - 1, 1));
    for (std::int64_t j = 0; j < n; ++j) {
      a[j] = scale[j] * s[j];
      e[j] = T(1);
      if (!training_) continue;
      k[j] = (dmean[j] - a[j] * doffset[j]) / count;
      b[j] = T(2) * dvariance[j] / less_one -
             (a[j] * s[j] * dscale[j] + s[j] * s[j] * s[j] * dinv[j]) / count;
      if (s[j] == T(0) || std::isnormal(s[j] * s[j] * s[j])) continue;
      e[j] = s[j];
      b[j] = T(2) * dvariance[j] / s[j] / less_one -
             (a[j] * dscale[j] + s[j] * s[j] * dinv[j]) / count;
    }
    const T *dy = c.input(0).data<T>(), *x = c.input(1).data<T>();
    const Chunks chunks = row_chunks(rows, n);
    c.parallel(chunks.count, [&](std::int64_t q) {
      for (std::int64_t i = chunks[q].begin; i < chunks[q].end; ++i) {
        const T *slope = dy + i * n, *from = x + i * n;
        T* to = dx + i * n;
#pragma omp simd
        for (std::int64_t j = 0; j < n; ++j)
          to[j] = slope[j] * a[j] + (from[j] - mean[j]) * e[j] * b[j] + k[j];
      }
    });
    return ok_status();
  }

  const bool training_;
};

}  // namespace

TROUPE_OPS(batch_norm) {
  r.add({.name = "FusedBatchNorm",
         .in = {"x", "scale", "offset", "mean", "variance"},
         .out = {"y", "batch_mean", "batch_variance", "inv_std"},
         .types = "f32 f64",
         .attrs = {"epsilon: float = 0.001", "is_training: bool = true"},
         .shape = batch_norm_shape,
         .grad = batch_norm_grad,
         .doc = "y = (x - m) / sqrt(v + epsilon) * scale + offset per channel, the last dimension "
                "of x. In training, m and v are the mean and variance of x, and the inputs mean "
                "and variance are not read; batch_variance is the unbiased one, for moving "
                "averages. Otherwise, and if x has no rows, m and v are those inputs, to which no "
                "gradient flows."})
      .cpu(float_kernel<FusedBatchNorm>)
      .cuda(cuda::batch_norm);
  r.add({.name = "FusedBatchNormGrad",
         .in = {"dy", "x", "scale", "mean", "inv_std", "dmean", "dvariance", "dinv_std"},
         .out = {"dx", "dscale", "doffset"},
         .types = "f32 f64",
         .attrs = {"is_training: bool = true"},
         .shape = batch_norm_grad_shape,
         .grad = batch_norm_grad_grad,
         .doc = "The gradient of FusedBatchNorm, given its outputs mean and inv_std and the "
                "gradients of all its outputs."})
      .cpu(float_kernel<FusedBatchNormGrad>)
      .cuda(cuda::batch_norm_grad);
}
