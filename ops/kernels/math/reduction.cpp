// Reductions: Sum, Mean, Prod, Max, Min, All, Any, and the gradients of the differentiable ones.
#include <limits>

#include <fmt/core.h>

#include "ops/complex/reduce_loops.hpp"
#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/formulas/reduction.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/reduce.hpp"

using namespace troupe;

namespace {

struct ReduceMean : ReduceSum {  // the mean of nothing is NaN
  template <class S>
  static S finish(S sum, std::int64_t n) {
    return n == 0 ? std::numeric_limits<S>::quiet_NaN() : sum / S(n);
  }
};
struct ReduceProd : ReduceSum {
  template <class T>
  static constexpr Sum<T> start() {
    return 1;
  }
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_integral_v<V>)
      return V(std::uint64_t(a) * std::uint64_t(b));  // u16 would go through a signed int
    else
      return V(a * b);
  }
};
struct ReduceMax {
  template <class T>
  using Sum = Compute<T>;
  template <class T>
  static constexpr Sum<T> start() {
    using L = std::numeric_limits<Sum<T>>;
    return L::has_infinity ? -L::infinity() : L::lowest();
  }
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_arithmetic_v<V>)
      return b > a || b != b ? b : a;
    else
      return (b != b) ? b : larger(a, b);
  }
};
struct ReduceMin : ReduceMax {
  template <class T>
  static constexpr Sum<T> start() {
    using L = std::numeric_limits<Sum<T>>;
    return L::has_infinity ? L::infinity() : L::max();
  }
  template <class V>
  V operator()(V a, V b) const {
    if constexpr (std::is_arithmetic_v<V>)
      return b < a || b != b ? b : a;
    else
      return (b != b) ? b : smaller(a, b);
  }
};
struct ReduceAll : ReduceMax {
  template <class T>
  static constexpr bool start() {
    return true;
  }
  bool operator()(bool a, bool b) const { return a && b; }
};
struct ReduceAny : ReduceMax {
  template <class T>
  static constexpr bool start() {
    return false;
  }
  bool operator()(bool a, bool b) const { return a || b; }
};

Expected<PartialShape> reduced_shape(const PartialShape& x, const std::vector<bool>& reduced,
                                     bool keep_dims) {
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i)
    if (!reduced[std::size_t(i)])
      dims.push_back(x.dim(i));
    else if (keep_dims)
      dims.push_back(1);
  return PartialShape::make(dims);
}
Status reduction_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  const auto& axes = c.ints_attr("axes");
  if (!x.known_rank()) {
    if (axes.empty() && !c.bool_attr("keep_dims")) c.set(0, PartialShape::scalar());
    return ok_status();
  }
  TROUPE_TRY(auto reduced, axis_set(axes, x.rank()));
  TROUPE_TRY(PartialShape y, reduced_shape(x, reduced, c.bool_attr("keep_dims")));
  c.set(0, std::move(y));
  return ok_status();
}

class ReduceKernel final : public Kernel {
 public:
  ReduceKernel(const KernelSpec& s, std::span<const ReduceLoops> table)
      : axes_(s.ints_attr("axes")), keep_(s.bool_attr("keep_dims")), table_(table) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(auto reduced, axis_set(axes_, x.rank()));
    TROUPE_TRY(PartialShape shape, reduced_shape(x.shape(), reduced, keep_));
    TROUPE_TRY(Tensor y, reduce(ctx, table_, x, std::move(reduced), shape.shape()));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  std::vector<std::int64_t> axes_;
  bool keep_;
  std::span<const ReduceLoops> table_;
};
Expected<std::unique_ptr<Kernel>> sum_kernel(const KernelSpec& spec) {
  return std::unique_ptr<Kernel>(new ReduceKernel(spec, sum_table(spec.type())));
}
std::span<const ReduceLoops> no_complex() { return {}; }
template <class Op, class List, std::span<const ReduceLoops> (*of_complex)() = no_complex>
Expected<std::unique_ptr<Kernel>> reducing(const KernelSpec& spec) {
  if (is_complex(spec.type())) return std::unique_ptr<Kernel>(new ReduceKernel(spec, of_complex()));
  return std::unique_ptr<Kernel>(new ReduceKernel(spec, reduce_table<Op>(List{})));
}

template <class Formula, bool wraps = false>
class ReduceOnGpu final : public cuda::DeviceKernel {
 public:
  explicit ReduceOnGpu(const KernelSpec& s)
      : axes_(s.ints_attr("axes")),
        keep_(s.bool_attr("keep_dims")),
        reduce_(typeid(Formula), s.type(), wraps) {}
  std::span<cuda::GpuFunction> functions() override { return reduce_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(auto reduced, axis_set(axes_, x.rank()));
    TROUPE_TRY(PartialShape shape, reduced_shape(x.shape(), reduced, keep_));
    TROUPE_TRY(Tensor y, reduce_(ctx, x, reduced, shape.shape()));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }

 private:
  std::vector<std::int64_t> axes_;
  bool keep_;
  cuda::Reducer reduce_;
};

// Spread: the adjoint of Sum and Mean. Each element of dy goes to all that were reduced to it.
Status spread_shape(InferenceContext& c) { return set_shape_from(c, 1); }
struct Share {
  Shape shape, kept;       // of the result, and of dy with the reduced dimensions as 1
  std::int64_t count = 1;  // elements that share one of dy

  static Expected<Share> of(const KernelContext& ctx, const std::vector<std::int64_t>& axes) {
    TROUPE_TRY(auto dims, host_ints(ctx.input(1), "shape"));
    Share s;
    TROUPE_TRY(s.shape, checked_shape(dims));
    TROUPE_TRY(auto reduced, axis_set(axes, s.shape.rank()));
    s.kept = s.shape;
    for (int i = 0; i < s.shape.rank(); ++i)
      if (reduced[std::size_t(i)]) {
        s.count *= s.shape.dim(i);
        s.kept.set_dim(i, 1);
      }
    const Tensor& dy = ctx.input(0);
    if (dy.elements() != s.kept.elements())
      return invalid_argument("dy is " + dy.shape().text() + ", not " + s.kept.text());
    return s;
  }
  // 1 / count, as the type computes it: f64 and c128 as double, all others as float.
  double of_mean(DType dtype) const {
    return dtype == DType::f64 || dtype == DType::c128 ? 1 / double(count)
                                                       : double(1 / float(count));
  }
};
struct Scaled {
  double scale;
  template <class T>
  T operator()(T x) const {
    return x * T(scale);
  }
};
class Spread final : public Kernel {
 public:
  explicit Spread(const KernelSpec& s)
      : axes_(s.ints_attr("axes")), mean_(s.bool_attr("mean")), dtype_(s.type()) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    TROUPE_TRY(const Share share, Share::of(ctx, axes_));
    TROUPE_TRY(auto meet, Broadcast<2>::of({&share.shape, &share.kept}));
    Tensor each = dy;
    if (mean_) {
      TROUPE_TRY(each, scaled(ctx, dy, share.of_mean(dtype_)));
    }
    TROUPE_TRY(Tensor dx, ctx.allocate(dtype_, share.shape));
    repeat_tensor(ctx, meet, each, dx);
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }

 private:
  Expected<Tensor> scaled(const KernelContext& ctx, const Tensor& dy, double scale) const {
    // The parts of complex numbers are scaled as real numbers.
    const DType part = is_complex(dtype_) ? real_of(dtype_) : dtype_;
    TROUPE_TRY(ElementOp op, (element_op<Scaled, Floats>(part, {scale})));
    TROUPE_TRY(Tensor y, ctx.allocate(dtype_, dy.shape()));
    const auto size = std::int64_t(dtype_size(part));
    const char* in = static_cast<const char*>(dy.raw());
    char* out = static_cast<char*>(y.mutable_raw());
    for_chunks(ctx, y.elements() * (part == dtype_ ? 1 : 2), [&](Range r) {
      op({.in = {in + r.begin * size}, .steps = {1}, .out = out + r.begin * size, .n = r.size()});
    });
    return y;
  }

  std::vector<std::int64_t> axes_;
  bool mean_;
  DType dtype_;
};
class SpreadOnGpu final : public cuda::DeviceKernel {
 public:
  explicit SpreadOnGpu(const KernelSpec& s)
      : axes_(s.ints_attr("axes")), mean_(s.bool_attr("mean")), repeat_(s.type()) {}
  std::span<cuda::GpuFunction> functions() override { return repeat_.functions(); }
  Status compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    TROUPE_TRY(const Share share, Share::of(ctx, axes_));
    std::optional<double> scale;
    if (mean_) scale = share.of_mean(dy.dtype());
    TROUPE_TRY(Tensor dx, repeat_(ctx, dy, share.kept, share.shape, scale));
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }

 private:
  std::vector<std::int64_t> axes_;
  bool mean_;
  cuda::Repeater repeat_;
};
Output spread(GradContext& c, Output dy, bool mean) {
  return c.g.add("Spread", {dy, c.g.add("Shape", {c.x[0]})},
                 {{"axes", c.ints_attr("axes")}, {"mean", mean}});
}
std::vector<Output> sum_grad(GradContext& c) { return {spread(c, c.dy[0], false)}; }
std::vector<Output> mean_grad(GradContext& c) { return {spread(c, c.dy[0], true)}; }
std::vector<Output> spread_grad(GradContext& c) {
  Output back =
      c.g.add(c.bool_attr("mean") ? "Mean" : "Sum", {c.dy[0]}, {{"axes", c.ints_attr("axes")}});
  return {c.g.add("Reshape", {back, c.g.add("Shape", {c.x[0]})}), Output()};
}
// Equal maxima share the gradient equally. Chosen, not multiplied by 0 and 1: behind sqrt(max(x))
// the gradient is infinite where all maxima are 0. `beyond` tells what the extremum is beyond: of a
// NaN nothing is, and all elements share its gradient.
std::vector<Output> reduced_extremum_grad(GradContext& c, std::string_view beyond) {
  const Output missed = c.g.add(beyond, {c.x[0], spread(c, c.y[0], false)});
  const Output hit = c.g.add("LogicalNot", {missed});
  Output hits =
      c.g.add("Sum", {of_dtype(hit, wide(c.x[0].dtype()))}, {{"axes", c.ints_attr("axes")}});
  hits = c.g.add("Reshape", {hits, c.g.add("Shape", {c.dy[0]})});
  const Output share = of_dtype(divide(wide(c.dy[0]), hits), c.dy[0].dtype());
  return {where(missed, scalar_like(share, 0), spread(c, share, false))};
}
std::vector<Output> max_grad(GradContext& c) { return reduced_extremum_grad(c, "Less"); }
std::vector<Output> min_grad(GradContext& c) { return reduced_extremum_grad(c, "Greater"); }

// dx = dy * the product of all the others, from products of what stands before and behind: right
// with one zero, or two, where y / x is not.
template <class T>
struct ProdGrad final : Kernel {
  explicit ProdGrad(const KernelSpec& s) : axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &x = ctx.input(1);
    TROUPE_TRY(auto reduced, axis_set(axes, x.rank()));
    TROUPE_TRY(check(dy, x, reduced));
    TROUPE_TRY(Tensor dx, ctx.allocate(dtype_of<T>, x.shape()));
    if (x.elements() == 0) return ctx.set_output(0, std::move(dx)), ok_status();
    const std::vector<std::int64_t> kept = offsets(x.shape(), reduced, false);
    const std::vector<std::int64_t> gone = offsets(x.shape(), reduced, true);
    const Chunks chunks = row_chunks(std::int64_t(kept.size()), std::int64_t(gone.size()));
    if (chunks.count != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        std::vector<Compute<T>> before(gone.size());
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k)
          others(x.data<T>() + kept[std::size_t(k)], dx.mutable_data<T>() + kept[std::size_t(k)],
                 gone, dy.data<T>()[k], before);
      });
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }
  // `before`: room for the products of what stands before each. T may not hold them.
  static void others(const T* x, T* dx, const std::vector<std::int64_t>& at, T dy,
                     std::vector<Compute<T>>& before) {
    Compute<T> product = dy;
    for (std::size_t n = 0; n < at.size(); ++n) {
      before[n] = product;
      product *= Compute<T>(x[at[n]]);
    }
    product = 1;
    for (std::size_t n = at.size(); n-- > 0;) {
      dx[at[n]] = T(before[n] * product);
      product *= Compute<T>(x[at[n]]);
    }
  }
  // dy has an element for each of the kept dimensions.
  static Status check(const Tensor& dy, const Tensor& x, const std::vector<bool>& reduced) {
    std::int64_t kept = 1;
    for (int i = 0; i < x.rank(); ++i) kept *= reduced[std::size_t(i)] ? 1 : x.dim(i);
    if (dy.elements() == kept) return ok_status();
    return invalid_argument("dy is " + dy.shape().text() + " for x " + x.shape().text());
  }
  // Where the elements are of the subspace of the reduced (or the kept) dimensions. REQUIRES: there
  // are elements, or the dimensions could be any.
  static std::vector<std::int64_t> offsets(const Shape& shape, const std::vector<bool>& reduced,
                                           bool wanted) {
    std::vector<std::int64_t> out{0};
    const Strides strides = strides_of(shape);
    for (int i = 0; i < shape.rank(); ++i) {
      if (reduced[std::size_t(i)] != wanted) continue;
      std::vector<std::int64_t> next;
      for (std::int64_t at : out)
        for (std::int64_t k = 0; k < shape.dim(i); ++k)
          next.push_back(at + k * strides[std::size_t(i)]);
      out = std::move(next);
    }
    return out;
  }
  std::vector<std::int64_t> axes;
};
Status prod_grad_shape(InferenceContext& c) {
  c.set(0, c.shape(1));
  return ok_status();
}
std::vector<Output> prod_grad(GradContext& c) {
  return {c.g.add("ProdGrad", {c.dy[0], conjugate(c.x[0])}, {{"axes", c.ints_attr("axes")}})};
}

// The gradient of what is proportional to dy: d times the slopes, added up to the shape of dy.
Output to_dy(GradContext& c, Output slopes) {
  Output sum = c.g.add("Sum", {multiply(c.dy[0], slopes)}, {{"axes", c.ints_attr("axes")}});
  return c.g.add("Reshape", {sum, c.g.add("Shape", {c.x[0]})});
}

// dx = dy * the derivative, along one tangent after the other, of the product of all other
// elements. That is what multiplies e1 e2 ... in the product of all others of x + t1 e1 + t2 e2 +
// ..., where any e squared is 0: again products of what stands before and behind, each with a
// number for every subset of the e.
template <class T>
struct ProdGradAlong final : Kernel {
  using C = Compute<T>;
  static constexpr int kMost = 8;  // tangents: there are 2^n subsets

  explicit ProdGradAlong(const KernelSpec& s) : axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor &dy = ctx.input(0), &x = ctx.input(1);
    TROUPE_TRY(auto reduced, axis_set(axes, x.rank()));
    TROUPE_TRY(ProdGrad<T>::check(dy, x, reduced));
    if (ctx.inputs() - 2 > kMost)
      return unimplemented(fmt::format("{} tangents; the limit is {}", ctx.inputs() - 2, kMost));
    std::vector<const T*> factors{x.data<T>()};
    for (int i = 2; i < ctx.inputs(); ++i) {
      if (ctx.input(i).shape() != x.shape())
        return invalid_argument(fmt::format("tangents[{}] is {} for x {}", i - 2,
                                            ctx.input(i).shape().text(), x.shape().text()));
      factors.push_back(ctx.input(i).data<T>());
    }
    TROUPE_TRY(Tensor dx, ctx.allocate(dtype_of<T>, x.shape()));
    if (x.elements() == 0) return ctx.set_output(0, std::move(dx)), ok_status();
    const std::vector<std::int64_t> kept = ProdGrad<T>::offsets(x.shape(), reduced, false);
    const std::vector<std::int64_t> gone = ProdGrad<T>::offsets(x.shape(), reduced, true);
    T* out = dx.mutable_data<T>();
    const Chunks chunks = row_chunks(std::int64_t(kept.size()), std::int64_t(gone.size()));
    if (chunks.count != 0)
      ctx.parallel(chunks.count, [&](std::int64_t c) {
        for (std::int64_t k = chunks[c].begin; k < chunks[c].end; ++k)
          others(factors, kept[std::size_t(k)], gone, C(dy.data<T>()[k]), out);
      });
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }

  // A product: for every subset of the tangents, what multiplies the e of these.
  using Product = std::vector<C>;

  // product *= factor + t1 e1 + t2 e2 + ...
  static void times(Product& product, const std::vector<const T*>& factors, std::int64_t at) {
    for (std::size_t set = product.size(); set-- > 0;) {  // subsets are smaller, and so still old
      C sum = product[set] * C(factors[0][at]);
      for (std::size_t t = 0; t + 1 < factors.size(); ++t)
        if ((set >> t) & 1) sum += product[set ^ (std::size_t{1} << t)] * C(factors[t + 1][at]);
      product[set] = sum;
    }
  }
  static void others(const std::vector<const T*>& factors, std::int64_t start,
                     const std::vector<std::int64_t>& gone, C dy, T* dx) {
    const std::size_t sets = std::size_t{1} << (factors.size() - 1);
    Product product(sets), before;
    product[0] = 1;
    for (std::int64_t at : gone) {
      before.insert(before.end(), product.begin(), product.end());
      times(product, factors, start + at);
    }
    std::fill(product.begin(), product.end(), C(0));
    product[0] = 1;
    for (std::size_t i = gone.size(); i-- > 0;) {
      C sum = 0;
      for (std::size_t set = 0; set < sets; ++set)
        sum += before[i * sets + set] * product[sets - 1 - set];
      dx[start + gone[i]] = T(dy * sum);
      times(product, factors, start + gone[i]);
    }
  }
  std::vector<std::int64_t> axes;
};
std::vector<Output> prod_grad_grad(GradContext& c) {
  const AttrMap axes{{"axes", c.ints_attr("axes")}};
  const Output dy = conjugate(c.x[0]), x = conjugate(c.x[1]);
  Output slopes = c.g.add("ProdGrad", {c.g.add("OnesLike", {dy}), x}, axes);
  return {to_dy(c, slopes), c.g.add("ProdGradAlong", {dy, x, c.dy[0]}, axes)};
}
// Derivatives along several tangents may be taken in any order, and d is one tangent more.
std::vector<Output> prod_grad_along_grad(GradContext& c) {
  // Along all tangents but the one at `without`, and along `last` where it is given.
  auto along = [&](Output dy, std::size_t without, Output last) {
    NodeSpec spec{.op = "ProdGradAlong",
                  .inputs = {dy, conjugate(c.x[1])},
                  .attrs = {{"axes", c.ints_attr("axes")}}};
    for (std::size_t i = 2; i < c.x.size(); ++i)
      if (i != without) spec.inputs.push_back(conjugate(c.x[i]));
    if (!last.empty()) spec.inputs.push_back(last);
    return c.g.add(std::move(spec)).output();
  };
  const Output dy = conjugate(c.x[0]);
  std::vector<Output> dx = {to_dy(c, along(c.g.add("OnesLike", {dy}), 0, Output())),
                            along(dy, 0, c.dy[0])};
  for (std::size_t i = 2; i < c.x.size(); ++i) dx.push_back(along(dy, i, c.dy[0]));
  return dx;
}

OpDef reduction(std::string name, std::string types, GradFn grad, std::string doc) {
  return {
      .name = std::move(name),
      .in = {"x"},
      .out = {"y"},
      .types = std::move(types),
      .attrs = {"axes: list(int) = []", "keep_dims: bool = false"},
      .shape = reduction_shape,
      .grad = grad,
      .no_gradient = grad == nullptr ? "a truth value" : "",
      .doc = std::move(doc) +
             " Reduces the dimensions `axes`, or all if the list is empty; keep_dims keeps them "
             "with size 1."};
}

}  // namespace

TROUPE_OPS(reduction) {
  r.add(reduction("Sum", kNumbersAndComplex, sum_grad, "The sum. Integers wrap around."))
      .cpu(sum_kernel)
      .cuda(make_kernel<ReduceOnGpu<formula::SumOf, true>>);
  r.add(reduction("Mean", kFloatsAndComplex, mean_grad, "The mean; NaN for an empty input."))
      .cpu(reducing<ReduceMean, Floats, complex_means>)
      .cuda(make_kernel<ReduceOnGpu<formula::MeanOf>>);
  r.add(reduction("Prod", kNumbersAndComplex, prod_grad, "The product. Integers wrap around."))
      .cpu(reducing<ReduceProd, Numbers, complex_products>)
      .cuda(make_kernel<ReduceOnGpu<formula::ProdOf, true>>);
  r.add(reduction("Max", kNumbers, max_grad,
                  "The maximum; NaN if any element is NaN. For an empty input it is -inf, or the "
                  "lowest integer. Equal maxima share the gradient equally."))
      .cpu(reducing<ReduceMax, Numbers>)
      .cuda(make_kernel<ReduceOnGpu<formula::MaxOf>>);
  r.add(reduction("Min", kNumbers, min_grad,
                  "The minimum; NaN if any element is NaN. For an empty input it is inf, or the "
                  "highest integer. Equal minima share the gradient equally."))
      .cpu(reducing<ReduceMin, Numbers>)
      .cuda(make_kernel<ReduceOnGpu<formula::MinOf>>);
  r.add(reduction("All", "bool", nullptr, "True if all elements are true."))
      .cpu(reducing<ReduceAll, Types<bool>>)
      .cuda(make_kernel<ReduceOnGpu<formula::AllOf>>);
  r.add(reduction("Any", "bool", nullptr, "True if any element is true."))
      .cpu(reducing<ReduceAny, Types<bool>>)
      .cuda(make_kernel<ReduceOnGpu<formula::AnyOf>>);
}

TROUPE_OPS(reduction_gradients) {
  r.add({.name = "Spread",
         .in = {"dy", "shape: i64"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"axes: list(int) = []", "mean: bool = false"},
         .shape = spread_shape,
         .grad = spread_grad,
         .host = {"shape"},
         .doc = "dy, shaped like a reduction over `axes` of a tensor of `shape` (with or without "
                "the reduced dimensions), repeated along them; divided by their size for `mean`. "
                "The gradient of Sum and Mean."})
      .cpu(make_kernel<Spread>)
      .cuda(make_kernel<SpreadOnGpu>);
  r.add({.name = "ProdGrad",
         .in = {"dy", "x"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"axes: list(int) = []"},
         .shape = prod_grad_shape,
         .grad = prod_grad_grad,
         .doc = "dx = dy * the product of the other elements, exact even with zeros: the gradient "
                "of Prod."})
      .cpu(typed_kernel<ProdGrad, FloatsAndComplex>);
  r.add({.name = "ProdGradAlong",
         .in = {"dy", "x", "tangents: T..."},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"axes: list(int) = []"},
         .shape = prod_grad_shape,
         .grad = prod_grad_along_grad,
         .doc = "dx = dy * the derivative, along one tangent after the other, of the product of "
                "the other elements, exact even with zeros: higher derivatives of Prod. Tangents "
                "have the shape of x; there are at most 8."})
      .cpu(typed_kernel<ProdGradAlong, FloatsAndComplex>);
}
