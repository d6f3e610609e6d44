// Cross entropy of softmax(logits) and labels, row by row, with the gradient as second output:
// both need the same exponentials.
#include <string>

#include "devices/chunks.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/softmax.hpp"
#include "ops/detail/class_labels.hpp"
#include "ops/formulas/arithmetic.hpp"
#include "ops/kernels/nn/softmax_rows.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/through_float.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/op.hpp"

using namespace troupe;

namespace {

// Every dimension but the last, whose elements are the classes.
PartialShape rows_of(const PartialShape& logits) {
  if (!logits.known_rank()) return PartialShape::unknown();
  PartialShape rows = PartialShape::unknown_of_rank(logits.rank() - 1);
  for (int i = 0; i < rows.rank(); ++i) rows.set_dim(i, logits[i]);
  return rows;
}

Status dense_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  TROUPE_TRY(c.want_rank_at_least(1, 1));
  TROUPE_TRY(PartialShape logits, PartialShape::merge(c.shape(0), c.shape(1)));
  c.set(0, rows_of(logits));
  c.set(1, std::move(logits));
  return ok_status();
}

Status sparse_shape(InferenceContext& c) {
  TROUPE_TRY(c.want_rank_at_least(0, 1));
  PartialShape logits = c.shape(0);
  TROUPE_TRY(PartialShape rows, PartialShape::merge(rows_of(logits), c.shape(1)));
  if (logits.known_rank())
    for (int i = 0; i < rows.rank(); ++i) logits.set_dim(i, rows[i]);
  else if (rows.known_rank())
    logits = PartialShape::unknown_of_rank(rows.rank() + 1);
  c.set(0, std::move(rows));
  c.set(1, std::move(logits));
  return ok_status();
}

Status scale_rows_shape(InferenceContext& c) {
  const PartialShape &x = c.shape(0), &scale = c.shape(1);
  if (x.known_rank() && scale.known_rank()) {
    bool fits = scale.rank() <= x.rank();
    for (int i = 0; fits && i < scale.rank(); ++i)
      fits = !x.known(i) || !scale.known(i) || x[i] == scale[i];
    if (!fits)
      return invalid_argument("scale " + scale.text() + " does not fit the rows of " + x.text());
  }
  return same_shape(c);
}

// What the two ops share: outputs, chunks of rows; `row(i, logits, n, backprop)` gives the loss.
template <class T, class Row>
Status run_rows(KernelContext& c, Row&& row) {
  const Tensor& logits = c.input(0);
  const Shape each = detail::rows_of(logits.shape());
  const std::int64_t rows = each.elements(), n = logits.dim(logits.rank() - 1);
  if (rows > 0 && n == 0) return invalid_argument("cross entropy over no classes");
  TROUPE_TRY(Tensor loss, c.allocate(dtype_of<T>, each));
  TROUPE_TRY(Tensor backprop, c.reuse_or_allocate(0, dtype_of<T>, logits.shape()));
  const T* x = logits.data<T>();
  T *y = backprop.mutable_data<T>(), *l = loss.mutable_data<T>();
  const Chunks chunks = row_chunks(rows, n);
  c.parallel(chunks.count, [&](std::int64_t k) {
    const Range r = chunks[k];
    for (std::int64_t i = r.begin; i < r.end; ++i) l[i] = row(i, x + i * n, n, y + i * n);
  });
  c.set_output(0, std::move(loss));
  c.set_output(1, std::move(backprop));
  return ok_status();
}

// loss = sum p (log sum e^x - x), backprop = softmax(x) sum p - p.
struct Dense {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &logits = c.input(0), &labels = c.input(1);
    TROUPE_TRY(detail::check_probabilities(logits, labels));
    const T* p = labels.data<T>();
    return run_rows<T>(c, [&](std::int64_t i, const T* x, std::int64_t n, T* y) {
      const T* target = p + i * n;
      const T max = row_max(x, n), log_sum = std::log(exp_sum(x, max, n));
      const T mass = row_sum<T>(n, [&](std::int64_t j) { return target[j]; });
      // A class of probability 0 contributes nothing, whatever its logit.
      const T loss = row_sum<T>(n, [&](std::int64_t j) {
        return target[j] == T(0) ? T(0) : target[j] * (log_sum - (x[j] - max));
      });
      softmax_row(x, n, y);
      for (std::int64_t j = 0; j < n; ++j) y[j] = y[j] * mass - target[j];
      return loss;
    });
  }
};

template <class Label>
struct Sparse {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &logits = c.input(0), &labels = c.input(1);
    TROUPE_TRY(detail::check_classes<Label>(logits, labels));
    const Label* label = labels.data<Label>();
    return run_rows<T>(c, [&](std::int64_t i, const T* x, std::int64_t n, T* y) {
      const T right = x[label[i]];  // read first: y may be x
      const RowOfSoftmax<T> row = softmax_row(x, n, y);
      y[label[i]] -= T(1);
      return row.log_sum - (right - row.max);
    });
  }
};

Expected<std::unique_ptr<Kernel>> sparse_kernel(const KernelSpec& spec) {
  if (spec.type("Tlabels") == DType::i32) return through_float_function<Sparse<std::int32_t>>(spec);
  return through_float_function<Sparse<std::int64_t>>(spec);
}

struct ScaleRows {
  template <class T>
  static Status run(KernelContext& c) {
    const Tensor &x = c.input(0), &scale = c.input(1);
    const int rank = scale.rank();
    if (rank > x.rank() || !(Shape(x.shape().dims().first(std::size_t(rank))) == scale.shape()))
      return invalid_argument("ScaleRows: " + scale.shape().text() + " does not fit the rows of " +
                              x.shape().text());
    TROUPE_TRY(Tensor y, c.reuse_or_allocate(0, dtype_of<T>, x.shape()));
    const std::int64_t n = x.shape().elements(rank, x.rank());
    const Chunks chunks = row_chunks(scale.elements(), n);
    const T *in = x.data<T>(), *s = scale.data<T>();
    T* out = y.mutable_data<T>();
    c.parallel(chunks.count, [&](std::int64_t k) {
      for (std::int64_t i = chunks[k].begin; i < chunks[k].end; ++i) {
        const T factor = s[i];
#pragma omp simd
        for (std::int64_t j = i * n; j < (i + 1) * n; ++j) out[j] = in[j] * factor;
        // A row that a loss leaves out has no gradient, whatever is in it.
        if (factor == T(0))
          for (std::int64_t j = i * n; j < (i + 1) * n; ++j)
            if (out[j] != out[j]) out[j] = T(0);
      }
    });
    c.set_output(0, std::move(y));
    return ok_status();
  }
};

// Of probabilities p: loss' = -log softmax(x), and 0 where that has no end, so that a class that a
// logit of -inf leaves out has no say. Of backprop = softmax(x) sum p - p, where `dy` arrives, it
// is what each element of p adds to all of its row, less dy.
Output by_probabilities(GradContext& c, bool of_backprop) {
  const Output share = c.g.add("LogSoftmax", {c.x[0]});
  const Output slope = where(c.g.add("IsInf", {share}), scalar_like(share, 0), negate(share));
  const Output dp = c.g.add("ScaleRows", {slope, c.dy[0]});
  if (!of_backprop) return dp;
  const Output all = c.g.add("Sum", {multiply(c.dy[1], c.g.add("Softmax", {c.x[0]}))},
                             {{"axes", std::vector<std::int64_t>{-1}}, {"keep_dims", true}});
  return plus(dp, minus(all, c.dy[1]));
}

// loss' = backprop. A gradient that arrives at backprop itself (a second derivative) passes
// through the softmax once more, scaled by the mass of the labels, which for classes is 1.
std::vector<Output> cross_entropy_grad(GradContext& c, bool dense) {
  const bool of_backprop = c.g.node(c.dy[1].node()).op != "ZerosLike";  // else none came
  // Labels are data most of the time.
  const Output dp = dense && c.wanted[1] ? by_probabilities(c, of_backprop) : Output();
  Output dx = c.g.add("ScaleRows", {c.y[1], c.dy[0]});
  if (!of_backprop) return {dx, dp};
  Output through = c.g.add("SoftmaxGrad", {c.dy[1], c.g.add("Softmax", {c.x[0]})});
  if (dense) {
    Output mass = c.g.add("Sum", {c.x[1]}, {{"axes", std::vector<std::int64_t>{-1}}});
    through = c.g.add("ScaleRows", {through, mass});
  }
  return {c.g.add("Add", {dx, through}), dp};
}
// x, of unknown rank, as a matrix with a row for each element of `scale`. Told in numbers, since -1
// cannot be told of no rows.
Output as_rows(Output x, Output scale) {
  GraphBuilder& g = x.graph();
  const Output rows = g.add("Size", {scale});
  const Output columns =
      g.add("Div", {g.add("Size", {x}), g.add("Maximum", {rows, scalar_like(rows, 1)})});
  return g.add("Reshape", {x, g.add("Pack", {rows, columns})});
}
// The scale of a row gets the sum over what it scaled.
std::vector<Output> scale_rows_grad(GradContext& c) {
  Output sum = multiply(c.dy[0], c.x[0]);
  const PartialShape &x = sum.shape(), &scale = c.x[1].shape();
  std::vector<std::int64_t> axes;
  if (x.known_rank() && scale.known_rank()) {
    for (int i = scale.rank(); i < x.rank(); ++i) axes.push_back(i);
    if (!axes.empty()) sum = c.g.add("Sum", {sum}, {{"axes", axes}});
  } else {
    axes = {1};
    sum = c.g.add("Sum", {as_rows(sum, c.x[1])}, {{"axes", axes}});
    sum = c.g.add("Reshape", {sum, c.g.add("Shape", {c.x[1]})});
  }
  return {c.g.add("ScaleRows", {c.dy[0], c.x[1]}), sum};
}
std::vector<Output> dense_grad(GradContext& c) { return cross_entropy_grad(c, true); }
std::vector<Output> sparse_grad(GradContext& c) { return cross_entropy_grad(c, false); }

}  // namespace

TROUPE_OPS(cross_entropy) {
  r.add({.name = "SoftmaxCrossEntropyWithLogits",
         .in = {"logits", "labels"},
         .out = {"loss", "backprop"},
         .types = kFloats,
         .shape = dense_shape,
         .grad = dense_grad,
         .doc = "The loss [...] of logits [...,C] against probabilities [...,C], one for each row; "
                "backprop is d loss / d logits. The labels have a gradient, too."})
      .cpu(through_float_function<Dense>)
      .cuda(cuda::cross_entropy);
  r.add({.name = "SparseSoftmaxCrossEntropyWithLogits",
         .in = {"logits", "labels: Tlabels"},
         .out = {"loss", "backprop"},
         .types = kFloats,
         .attrs = {"Tlabels: type {i32 i64} = i64"},
         .shape = sparse_shape,
         .grad = sparse_grad,
         .host = {"labels"},
         .doc = "The loss [...] of logits [...,C] against class numbers [...], one for each row; "
                "backprop is d loss / d logits. A label outside [0, C) is invalid_argument."})
      .cpu(sparse_kernel)
      .cuda(cuda::sparse_cross_entropy);
  r.add({.name = "ScaleRows",
         .in = {"x", "scale"},
         .out = {"y"},
         .types = kFloats,
         .shape = scale_rows_shape,
         .grad = scale_rows_grad,
         .doc =
             "y[i, ...] = x[i, ...] * scale[i], where the dimensions of scale are the first ones "
             "of x: the gradient of a loss per row. A row scaled by 0 is 0 everywhere, even where "
             "x is infinite or NaN."})
      .cpu(through_float_function<ScaleRows>)
      .cuda(cuda::elementwise<formula::ScaleRow, cuda::Shapes::first>);
}
