// Softmax and LogSoftmax over the last dimension, with their gradients.
#include "ops/cuda/softmax.hpp"
#include "devices/chunks.hpp"
#include "ops/kernels/nn/softmax_rows.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

Status softmax_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  return same_shape(c);
}

// Calls `row(i)` for every row of `x`, several rows to a chunk.
template <class F>
void for_rows(KernelContext& c, const Tensor& x, std::int64_t n, F&& row) {
  const Chunks chunks = row_chunks(n == 0 ? 0 : x.elements() / n, n);
  c.parallel(chunks.count, [&](std::int64_t i) {
    const Range r = chunks[i];
    for (std::int64_t j = r.begin; j < r.end; ++j) row(j);
  });
}

template <class F>
struct RowFunction {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor& x = c.input(0);
    if (x.rank() < 1) return invalid_argument("softmax wants at least one dimension");
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    const std::int64_t n = x.dim(x.rank() - 1);
    const T* in = x.data<T>();
    T* out = y.mutable_data<T>();
    for_rows(c, x, n, [&](std::int64_t i) { F::row(in + i * n, n, out + i * n); });
    c.set_output(0, std::move(y));
    return ok_status();
  }
};

template <class F>
struct RowGradient {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &dy = c.input(0), &y = c.input(1);
    if (!(dy.shape() == y.shape()) || y.rank() < 1)
      return invalid_argument("dy is " + dy.shape().text() + ", y is " + y.shape().text());
    TROUPE_TRY(Tensor dx, c.reuse_or_allocate(0, dtype_of<T>, dy.shape()));
    const std::int64_t n = y.dim(y.rank() - 1);
    const T *slope = dy.data<T>(), *at = y.data<T>();
    T* out = dx.mutable_data<T>();
    for_rows(c, y, n,
             [&](std::int64_t i) { F::row_grad(slope + i * n, at + i * n, n, out + i * n); });
    c.set_output(0, std::move(dx));
    return ok_status();
  }
};

struct Softmax {
  template <class T>
  static void row(const T* x, std::int64_t n, T* y) {
    softmax_row(x, n, y);
  }
  // dx = (dy - sum(dy y)) y
  template <class T>
  static void row_grad(const T* dy, const T* y, std::int64_t n, T* dx) {
    const T mean = row_sum<T>(n, [&](std::int64_t j) { return dy[j] * y[j]; });
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) dx[j] = (dy[j] - mean) * y[j];
  }
};

struct LogSoftmax {
  template <class T>
  static void row(const T* x, std::int64_t n, T* y) {
    const T max = row_max(x, n), log_sum = std::log(exp_sum(x, max, n));
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) y[j] = (x[j] - max) - log_sum;
  }
  // dx = dy - e^y sum(dy)
  template <class T>
  static void row_grad(const T* dy, const T* y, std::int64_t n, T* dx) {
    const T sum = row_sum<T>(n, [&](std::int64_t j) { return dy[j]; });
#pragma omp simd
    for (std::int64_t j = 0; j < n; ++j) dx[j] = dy[j] - exp_value(y[j]) * sum;
  }
};

std::vector<Output> softmax_grad(GradContext& c) {
  return {c.g.add("SoftmaxGrad", {c.dy[0], c.y[0]})};
}
std::vector<Output> log_softmax_grad(GradContext& c) {
  return {c.g.add("LogSoftmaxGrad", {c.dy[0], c.y[0]})};
}

// Second order, with sums over each row, for z = (dy - sum(dy y)) y: the matrix that dy is
// multiplied by is symmetric, and the slope for y is d (dy - sum(dy y)) - dy sum(d y).
Output row_sums(Output x) {
  const std::vector<std::int64_t> last{-1};
  return x.graph().add("Sum", {x}, {{"axes", last}, {"keep_dims", true}});
}
std::vector<Output> softmax_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0], y = c.x[1];
  Output by_y = minus(multiply(d, minus(dy, row_sums(multiply(dy, y)))),
                      multiply(dy, row_sums(multiply(d, y))));
  return {c.g.add("SoftmaxGrad", {d, y}), by_y};
}
// z = dy - e^y sum(dy)
std::vector<Output> log_softmax_grad_grad(GradContext& c) {
  const Output d = c.dy[0], dy = c.x[0];
  Output weighted = multiply(d, c.g.add("Exp", {c.x[1]}));
  return {minus(d, row_sums(weighted)), negate(multiply(weighted, row_sums(dy)))};
}

}  // namespace

TROUPE_OPS(softmax) {
  r.add({.name = "Softmax",
         .in = {"logits"},
         .out = {"y"},
         .types = kFloats,
         .shape = softmax_shape,
         .grad = softmax_grad,
         .doc = "y = e^logits / sum(e^logits) over the last dimension, without overflow."})
      .cpu(through_float_function<RowFunction<Softmax>>)
      .cuda(cuda::softmax);
  r.add({.name = "SoftmaxGrad",
         .in = {"dy", "y"},
         .out = {"dx"},
         .types = kFloats,
         .shape = softmax_shape,
         .grad = softmax_grad_grad,
         .doc = "The gradient of Softmax, given its output y."})
      .cpu(through_float_function<RowGradient<Softmax>>)
      .cuda(cuda::softmax);
  r.add({.name = "LogSoftmax",
         .in = {"logits"},
         .out = {"y"},
         .types = kFloats,
         .shape = softmax_shape,
         .grad = log_softmax_grad,
         .doc = "y = logits - log(sum(e^logits)) over the last dimension, without overflow."})
      .cpu(through_float_function<RowFunction<LogSoftmax>>)
      .cuda(cuda::softmax);
  r.add({.name = "LogSoftmaxGrad",
         .in = {"dy", "y"},
         .out = {"dx"},
         .types = kFloats,
         .shape = softmax_shape,
         .grad = log_softmax_grad_grad,
         .doc = "The gradient of LogSoftmax, given its output y."})
      .cpu(through_float_function<RowGradient<LogSoftmax>>)
      .cuda(cuda::softmax);
}
