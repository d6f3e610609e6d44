// MaxPool and its gradient. Of equal maxima the first in window order (row by row) takes the
// gradient; the forward op keeps no index, the gradient finds it again by comparing.
#include <limits>

#include "troupe/ops/kernels/pool.hpp"
#include "troupe/ops/op.hpp"

using namespace troupe;

namespace {

Status max_pool_shape(InferenceContext& c) { return pool_output_shape(c, 0, 0); }

Status max_pool_grad_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) TROUPE_TRY(c.want_rank(i, 4));
  TROUPE_TRY(pool_output_shape(c, 0, 0));  // checks the attributes against x
  return same_shape(c);
}

template <class T>
class MaxPool final : public Kernel {
 public:
  explicit MaxPool(const WindowAttrs& window) : window_(window) {}

  Status compute(KernelContext& c) override {
    const Tensor& x = c.input(0);
    TROUPE_TRY(PoolShape p, pool_shape(window_, x.shape()));
    TROUPE_TRY(Tensor y, c.allocate(dtype_of<T>, pooled_shape(p)));
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for_pool_blocks<T>(c, p,
                       [&](const PoolBlock& b, auto width) { block<width.value>(p, b, in, out); });
    c.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  // NaN wins and stays: it is not <= anything, and nothing is larger than it.
  template <int kWidth>
  static void block(const PoolShape& p, const PoolBlock& b, const T* x, T* y) {
    x += b.first, y += b.y;
    T best[kWidth];
    for (int j = 0; j < kWidth; ++j) best[j] = -std::numeric_limits<T>::infinity();
    for (std::int64_t ih = b.rows.begin; ih < b.rows.end; ++ih)
      for (std::int64_t iw = b.columns.begin; iw < b.columns.end; ++iw) {
        const T* from = x + pixel(p, b.n, ih, iw);
        for (int j = 0; j < kWidth; ++j)
          best[j] = from[j] > best[j] || from[j] != from[j] ? from[j] : best[j];
      }
    for (int j = 0; j < kWidth; ++j) y[j] = best[j];
  }

  const WindowAttrs window_;
};

template <class T>
class MaxPoolGrad final : public Kernel {
 public:
  explicit MaxPoolGrad(const WindowAttrs& window) : window_(window) {}

  Status compute(KernelContext& c) override {
    const Tensor &x = c.input(0), &y = c.input(1), &dy = c.input(2);
    TROUPE_TRY(PoolShape p, pool_shape(window_, x.shape()));
    if (!(y.shape() == pooled_shape(p)) || !(dy.shape() == y.shape()))
      return invalid_argument("y is " + y.shape().text() + " and dy " + dy.shape().text() +
                              ", but the pool gives " + pooled_shape(p).text());
    TROUPE_TRY(Tensor dx, c.allocate(dtype_of<T>, x.shape()));
    const T *in = x.data<T>(), *out = y.data<T>(), *of_out = dy.data<T>();
    T* to = dx.mutable_data<T>();
    for_pool_gradient_blocks(c, p, to, [&](const PoolBlock& b, auto width) {
      block<width.value>(p, b, in, out, of_out, to);
    });
    c.set_output(0, std::move(dx));
    return ok_status();
  }

 private:
  // `left` is what of dy no element has taken yet. Without branches: the loops vectorise.
  template <int kWidth>
  static void block(const PoolShape& p, const PoolBlock& b, const T* x, const T* y, const T* dy,
                    T* dx) {
    x += b.first, y += b.y, dy += b.y, dx += b.first;
    T left[kWidth], top[kWidth];
    for (int j = 0; j < kWidth; ++j) left[j] = dy[j], top[j] = y[j];
    for (std::int64_t ih = b.rows.begin; ih < b.rows.end; ++ih)
      for (std::int64_t iw = b.columns.begin; iw < b.columns.end; ++iw) {
        const std::int64_t offset = pixel(p, b.n, ih, iw);
        const T* __restrict from = x + offset;
        T* __restrict to = dx + offset;
        for (int j = 0; j < kWidth; ++j) {
          const bool is_max = !(from[j] < top[j]);
          to[j] += is_max ? left[j] : T(0);
          left[j] = is_max ? T(0) : left[j];
        }
      }
  }

  const WindowAttrs window_;
};

std::vector<Output> max_pool_grad(GradContext& c) {
  return {c.g.add("MaxPoolGrad", {c.x[0], c.y[0], c.dy[0]}, pool_attrs(c))};
}

}  // namespace

TROUPE_OPS(max_pool) {
  r.add({.name = "MaxPool",
         .in = {"x"},
         .out = {"y"},
         .types = "f32 f64",
         .attrs = pool_attr_specs(),
         .shape = max_pool_shape,
         .grad = max_pool_grad,
         .doc = "The largest element of each window over height and width of x [n,h,w,c]; ksize "
                "and strides are [h,w] or [1,h,w,1]. Padding never wins. NaN does."})
      .cpu(window_kernel<true, MaxPool>);
  r.add({.name = "MaxPoolGrad",
         .in = {"x", "y", "dy"},
         .out = {"dx"},
         .types = "f32 f64",
         .attrs = pool_attr_specs(),
         .shape = max_pool_grad_shape,
         .doc = "The gradient of MaxPool, given its input x and output y. Of equal maxima the "
                "first in window order, row by row, takes all of dy."})
      .cpu(window_kernel<true, MaxPoolGrad>);
}
