// AvgPool and its gradient. Padding does not count: the divisor is the part of the window inside.
#include "ops/cuda/pool.hpp"
#include "ops/kernels/nn/pool.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status avg_pool_shape(InferenceContext& c) { return pool_output_shape(c, 0, 0); }

Status avg_pool_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank(0, 1));
  TROUPE_TRY(c.want_rank(1, 4));
  TROUPE_TRY(read_window(c, true));
  PartialShape dx = PartialShape::unknown_of_rank(4);
  TROUPE_TRY(PartialShape listed, c.listed_shape(0));
  if (listed.known_rank() && listed.rank() != 4)
    return invalid_argument("x_sizes must have 4 elements");
  TROUPE_TRY(dx, PartialShape::merge(dx, listed));
  for (int i : {0, 3})  // batch and channels are dy's
    if (!dx.known(i) && c.shape(1).known_rank()) dx.set_dim(i, c.shape(1)[i]);
  c.set(0, std::move(dx));
  return ok_status();
}

struct AvgWindow {
  template <int kWidth, class T>
  static TROUPE_INLINE void block(const PoolShape& p, const PoolBlock& b, const T* x, T* y) {
    x += b.first, y += b.y;
    T sum[kWidth] = {};
    for (std::int64_t ih = b.rows.begin; ih < b.rows.end; ++ih)
      for (std::int64_t iw = b.columns.begin; iw < b.columns.end; ++iw) {
        const T* from = x + pixel(p, b.n, ih, iw);
        for (int j = 0; j < kWidth; ++j) sum[j] += from[j];
      }
    const T count = T(b.rows.size() * b.columns.size());
    for (int j = 0; j < kWidth; ++j) y[j] = sum[j] / count;
  }
};
template <class T>
using AvgPool = Pool<T, AvgWindow>;

template <class T>
class AvgPoolGrad final : public Kernel {
 public:
  explicit AvgPoolGrad(const WindowAttrs& window) : window_(window) {}

  Status compute(KernelContext& c) override {
    const Tensor& dy = c.input(1);
    TROUPE_TRY(Shape sizes, shape_operand(c.input(0)));
    TROUPE_TRY(PoolShape p, pool_shape(window_, sizes));
    if (!(dy.shape() == pooled_shape(p)))
      return invalid_argument("dy is " + dy.shape().text() + ", but the pool gives " +
                              pooled_shape(p).text());
    TROUPE_TRY(Tensor dx, c.allocate(dtype_of<T>, sizes));
    const T* from = dy.data<T>();
    T* to = dx.mutable_data<T>();
    for_pool_gradient_blocks(
        c, p, to, [&](const PoolBlock& b, auto width) { block<width.value>(p, b, from, to); });
    c.set_output(0, std::move(dx));
    return ok_status();
  }

 private:
  template <int kWidth>
  static TROUPE_INLINE void block(const PoolShape& p, const PoolBlock& b, const T* dy, T* dx) {
    dy += b.y, dx += b.first;
    const T count = T(b.rows.size() * b.columns.size());
    T share[kWidth];
    for (int j = 0; j < kWidth; ++j) share[j] = dy[j] / count;
    for (std::int64_t ih = b.rows.begin; ih < b.rows.end; ++ih)
      for (std::int64_t iw = b.columns.begin; iw < b.columns.end; ++iw) {
        T* to = dx + pixel(p, b.n, ih, iw);
        for (int j = 0; j < kWidth; ++j) to[j] += share[j];
      }
  }

  const WindowAttrs window_;
};

std::vector<Output> avg_pool_grad(GradContext& c) {
  return {c.g.add("AvgPoolGrad", {c.g.add("Shape", {c.x[0]}), c.dy[0]}, pool_attrs(c))};
}
// The gradient is linear in dy, and its transpose is the pool itself.
std::vector<Output> avg_pool_grad_grad(GradContext& c) {
  return {Output(), c.g.add("AvgPool", {c.dy[0]}, pool_attrs(c))};
}

}  // namespace

TROUPE_OPS(avg_pool) {
  r.add({.name = "AvgPool",
         .in = {"x"},
         .out = {"y"},
         .types = kFloats,
         .attrs = pool_attr_specs(),
         .shape = avg_pool_shape,
         .grad = avg_pool_grad,
         .contraction = true,
         .doc = "The mean of each window over height and width of x [n,h,w,c]; ksize and strides "
                "are [h,w] or [1,h,w,1]; explicit_paddings, with padding EXPLICIT, are "
                "[top,bottom,left,right]. Padding does not count. f16 and bf16 are summed in f32 "
                "and rounded once."})
      .cpu(window_kernel<true, AvgPool>)
      .cuda(cuda::pool);
  auto attrs = pool_attr_specs();
  attrs.push_back("Tsizes: type {i32 i64} = i64");
  r.add({.name = "AvgPoolGrad",
         .in = {"x_sizes: Tsizes", "dy"},
         .out = {"dx"},
         .types = kFloats,
         .attrs = attrs,
         .shape = avg_pool_grad_shape,
         .grad = avg_pool_grad_grad,
         .host = {"x_sizes"},
         .contraction = true,
         .doc = "The gradient of AvgPool for images of shape x_sizes."})
      .cpu(window_kernel<true, AvgPoolGrad>)
      .cuda(cuda::pool);
}
