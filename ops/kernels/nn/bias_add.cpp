// BiasAdd: one value per channel, the last dimension, added to every row; and its gradient.
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/detail/bias.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/formulas/reduction.hpp"
#include "ops/kernels/support/columns.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status bias_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  TROUPE_TRY(c.want_rank(1, 1));
  TROUPE_TRY(PartialShape y, detail::with_bias(c.shape(0), c.shape(1)));
  c.set(0, std::move(y));
  return ok_status();
}

Status bias_grad_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  const PartialShape& dy = c.shape(0);
  c.set(0, dy.known_rank() ? PartialShape{dy[dy.rank() - 1]} : PartialShape::unknown_of_rank(1));
  return ok_status();
}

std::vector<Output> bias_grad(GradContext& c) {
  return {c.dy[0], c.g.add("BiasAddGrad", {c.dy[0]})};
}

// BiasAddGrad is linear: what arrives at the sums goes to every row.
std::vector<Output> bias_grad_grad(GradContext& c) {
  return {c.g.add("BiasAdd", {c.g.add("ZerosLike", {c.x[0]}), c.dy[0]})};
}

struct BiasAdd {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &x = c.input(0), &bias = c.input(1);
    if (x.rank() < 1 || bias.rank() != 1 || bias.dim(0) != x.dim(x.rank() - 1))
      return invalid_argument("BiasAdd: bias " + bias.shape().text() +
                              " does not fit the channels of " + x.shape().text());
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    const std::int64_t channels = bias.dim(0), rows = channels == 0 ? 0 : x.elements() / channels;
    const T *in = x.data<T>(), *b = bias.data<T>();
    T* out = y.mutable_data<T>();
    const Chunks chunks = row_chunks(rows, channels);
    c.parallel(chunks.count, [&](std::int64_t i) {
      const Range r = chunks[i];
      for (std::int64_t row = r.begin; row < r.end; ++row) {
        const T* from = in + row * channels;
        T* to = out + row * channels;
        // `to` is `from` or apart from it, never one element ahead.
#pragma omp simd
        for (std::int64_t j = 0; j < channels; ++j) to[j] = from[j] + b[j];
      }
    });
    c.set_output(0, std::move(y));
    return ok_status();
  }
};

struct BiasAddGrad {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor& dy = c.input(0);
    if (dy.rank() < 1) return invalid_argument("BiasAddGrad wants at least one dimension");
    const std::int64_t n = dy.dim(dy.rank() - 1), rows = n == 0 ? 0 : dy.elements() / n;
    TROUPE_TRY(Tensor db, c.allocate(dtype_of<T>, Shape{n}));
    const T* slope = dy.data<T>();
    TROUPE_TRY(column_sums<T>(c, rows, n, n, db.mutable_data<T>(), [&](Range r, T* sums) {
      add_terms(r, n, sums, [=](std::int64_t i, std::int64_t j) { return slope[i * n + j]; });
    }));
    c.set_output(0, std::move(db));
    return ok_status();
  }
};

class BiasAddGradOnGpu final : public cuda::DeviceKernel {
 public:
  explicit BiasAddGradOnGpu(const KernelSpec& s) : sum_(typeid(formula::SumOf), s.type(), false) {}
  std::span<cuda::GpuFunction> functions() override { return sum_.functions(); }
  Status compute(KernelContext& c) override {
    const Tensor& dy = c.input(0);
    if (dy.rank() < 1) return invalid_argument("BiasAddGrad wants at least one dimension");
    std::vector<bool> rows(std::size_t(dy.rank()), true);
    rows.back() = false;
    TROUPE_TRY(Tensor db, sum_(c, dy, rows, Shape{dy.dim(dy.rank() - 1)}));
    c.set_output(0, std::move(db));
    return ok_status();
  }

 private:
  cuda::Reducer sum_;
};

}  // namespace

TROUPE_OPS(bias_add) {
  r.add({.name = "BiasAdd",
         .in = {"x", "bias"},
         .out = {"y"},
         .types = kFloats,
         .shape = bias_shape,
         .grad = bias_grad,
         .doc = "y = x + bias, where bias has one element per channel: the last dimension of x."})
      .cpu(through_float_function<BiasAdd>)
      .cuda(cuda::elementwise<formula::Add, cuda::Shapes::last>);
  r.add({.name = "BiasAddGrad",
         .in = {"dy"},
         .out = {"db"},
         .types = kFloats,
         .shape = bias_grad_shape,
         .grad = bias_grad_grad,
         .doc = "The sum of dy over every dimension but the last. The sum has a fixed order."})
      .cpu(through_float_function<BiasAddGrad>)
      .cuda(make_kernel<BiasAddGradOnGpu>);
}
