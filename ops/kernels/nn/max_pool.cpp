// MaxPool and its gradient. Of equal maxima the first in window order (row by row) takes the
// gradient; the forward op keeps no index, the gradient finds it again by comparing.
#include <limits>

#include "ops/cuda/pool.hpp"
#include "ops/kernels/nn/pool.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status max_pool_shape(InferenceContext& c) { return pool_output_shape(c, 0, 0); }

Status max_pool_grad_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) TROUPE_TRY(c.want_rank(i, 4));
  TROUPE_TRY(pool_output_shape(c, 0, 0));  // checks the attributes against x
  return same_shape(c);
}

Status max_pool_pick_shape(InferenceContext& c) {
  for (int i = 0; i < 3; ++i) TROUPE_TRY(c.want_rank(i, 4));
  TROUPE_TRY(PartialShape::merge(c.shape(0), c.shape(2)));
  TROUPE_TRY(pool_output_shape(c, 0, 0));
  if (!c.shape(0).fully_known() && c.shape(1).known_rank()) c.set(0, c.shape(1));
  return ok_status();
}

struct MaxWindow {
  // NaN wins and stays: it is not <= anything, and nothing is larger than it.
  template <int kWidth, class T>
  static TROUPE_INLINE void block(const PoolShape& p, const PoolBlock& b, const T* x, T* y) {
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
};
template <class T>
using MaxPool = Pool<T, MaxWindow>;

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
  static TROUPE_INLINE void block(const PoolShape& p, const PoolBlock& b, const T* x, const T* y,
                                  const T* dy, T* dx) {
    x += b.first, y += b.y, dy += b.y, dx += b.first;
    T left[kWidth], top[kWidth];
    for (int j = 0; j < kWidth; ++j) left[j] = dy[j], top[j] = y[j];
    for (std::int64_t ih = b.rows.begin; ih < b.rows.end; ++ih)
      for (std::int64_t iw = b.columns.begin; iw < b.columns.end; ++iw) {
        const std::int64_t offset = pixel(p, b.n, ih, iw);
        const T* __restrict from = x + offset;
        T* __restrict to = dx + offset;
        for (int j = 0; j < kWidth; ++j) {
          const bool is_max = from[j] >= top[j] || from[j] != from[j];  // a NaN is one
          to[j] += is_max ? left[j] : T(0);
          left[j] = is_max ? T(0) : left[j];
        }
      }
  }

  const WindowAttrs window_;
};

// The transpose of MaxPoolGrad: each window takes d where its maximum stands.
template <class T>
class MaxPoolPick final : public Kernel {
 public:
  explicit MaxPoolPick(const WindowAttrs& window) : window_(window) {}

  Status compute(KernelContext& c) override {
    const Tensor &x = c.input(0), &y = c.input(1), &d = c.input(2);
    TROUPE_TRY(PoolShape p, pool_shape(window_, x.shape()));
    if (!(y.shape() == pooled_shape(p)) || !(d.shape() == x.shape()))
      return invalid_argument("y is " + y.shape().text() + " and d " + d.shape().text() +
                              ", but the pool makes " + pooled_shape(p).text() + " of " +
                              x.shape().text());
    TROUPE_TRY(Tensor picked, c.allocate(dtype_of<T>, y.shape()));
    const T *in = x.data<T>(), *out = y.data<T>(), *of_in = d.data<T>();
    T* to = picked.mutable_data<T>();
    for_pool_blocks<T>(c, p, [&](const PoolBlock& b, auto width) {
      block<width.value>(p, b, in, out, of_in, to);
    });
    c.set_output(0, std::move(picked));
    return ok_status();
  }

 private:
  // Backwards through the window, so that the first of equal maxima is what stays.
  template <int kWidth>
  static TROUPE_INLINE void block(const PoolShape& p, const PoolBlock& b, const T* x, const T* y,
                                  const T* d, T* picked) {
    x += b.first, y += b.y, d += b.first, picked += b.y;
    T top[kWidth], found[kWidth];
    for (int j = 0; j < kWidth; ++j) top[j] = y[j], found[j] = T(0);
    for (std::int64_t ih = b.rows.end; ih-- > b.rows.begin;)
      for (std::int64_t iw = b.columns.end; iw-- > b.columns.begin;) {
        const std::int64_t offset = pixel(p, b.n, ih, iw);
        for (int j = 0; j < kWidth; ++j) {
          const T v = x[offset + j];
          found[j] = v >= top[j] || v != v ? d[offset + j] : found[j];
        }
      }
    for (int j = 0; j < kWidth; ++j) picked[j] = found[j];
  }

  const WindowAttrs window_;
};

std::vector<Output> max_pool_grad(GradContext& c) {
  return {c.g.add("MaxPoolGrad", {c.x[0], c.y[0], c.dy[0]}, pool_attrs(c))};
}
// Both ways are linear in their last input, each the other's transpose; a small change of x or y
// moves no maximum.
std::vector<Output> max_pool_grad_grad(GradContext& c) {
  return {Output(), Output(), c.g.add("MaxPoolPick", {c.x[0], c.x[1], c.dy[0]}, pool_attrs(c))};
}
std::vector<Output> max_pool_pick_grad(GradContext& c) {
  return {Output(), Output(), c.g.add("MaxPoolGrad", {c.x[0], c.x[1], c.dy[0]}, pool_attrs(c))};
}

}  // namespace

TROUPE_OPS(max_pool) {
  r.add({.name = "MaxPool",
         .in = {"x"},
         .out = {"y"},
         .types = kFloats,
         .attrs = pool_attr_specs(),
         .shape = max_pool_shape,
         .grad = max_pool_grad,
         .contraction = true,
         .doc = "The largest element of each window over height and width of x [n,h,w,c]; ksize "
                "and strides are [h,w] or [1,h,w,1]; explicit_paddings, with padding EXPLICIT, are "
                "[top,bottom,left,right]. Padding is ignored; a NaN is the largest."})
      .cpu(window_kernel<true, MaxPool>)
      .cuda(cuda::pool);
  r.add({.name = "MaxPoolGrad",
         .in = {"x", "y", "dy"},
         .out = {"dx"},
         .types = kFloats,
         .attrs = pool_attr_specs(),
         .shape = max_pool_grad_shape,
         .grad = max_pool_grad_grad,
         .contraction = true,
         .doc = "The gradient of MaxPool, given its input x and output y. Of equal maxima, the "
                "first in window order, row by row, gets all of dy."})
      .cpu(window_kernel<true, MaxPoolGrad>)
      .cuda(cuda::pool);
  r.add({.name = "MaxPoolPick",
         .in = {"x", "y", "d"},
         .out = {"picked"},
         .types = kFloats,
         .attrs = pool_attr_specs(),
         .shape = max_pool_pick_shape,
         .grad = max_pool_pick_grad,
         .doc = "For each window of MaxPool with input x and output y, the element of d at the "
                "position of the first maximum of x: the gradient of MaxPoolGrad for dy."})
      .cpu(window_kernel<true, MaxPoolPick>)
      .cuda(cuda::pool);
}
