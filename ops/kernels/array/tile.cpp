// Tile and its gradient: a tensor repeated.
#include <fmt/core.h>

#include "ops/cuda/device_kernel.hpp"
#include "ops/cuda/moves.hpp"
#include "ops/cuda/reduce.hpp"
#include "ops/formulas/reduction.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

// Each dimension of x, repeated; TileGrad goes back from dy to the sum of the copies.
Expected<PartialShape> tiled(const PartialShape& x, const Ints& multiples, bool back) {
  if (!x.known_rank()) return x;
  if (multiples.size() != std::size_t(x.rank()))
    return wrong_length("multiples", multiples.size(), x.rank());
  PartialShape y = x;
  for (int i = 0; i < x.rank(); ++i) {
    std::int64_t m = multiples[std::size_t(i)], d = x.dim(i);
    if (m < 0 || (x.known(i) && (back ? m == 0 || d % m != 0 : __builtin_mul_overflow(d, m, &d))))
      return invalid_argument(fmt::format("multiple {} of dimension {} of {}", m, i, x.text()));
    if (x.known(i)) y.set_dim(i, back ? d / m : d);
  }
  return y;
}
Status tile_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape y, tiled(c.shape(0), c.ints_attr("multiples"), false));
  c.set(0, std::move(y));
  return ok_status();
}
Status tile_grad_shape(InferenceContext& c) { return set_shape_from(c, 1); }
// For each repetition, counted in the index space `multiples`, its offset in the tiled tensor.
template <class F>
void for_tiles(const Shape& multiples, const Shape& one, const Shape& tiled, F&& f) {
  if (multiples.elements() == 0) return;  // of nothing, other dimensions may be of any size
  Strides step = strides_of(tiled);
  for (int i = 0; i < one.rank(); ++i) step[std::size_t(i)] *= one.dim(i);
  strided_rows(multiples, step, step, {0, row_count(multiples)},
               [&](std::int64_t at, std::int64_t, std::int64_t n) {
                 const int last = multiples.rank() - 1;
                 for (std::int64_t i = 0; i < n; ++i)
                   f(at + i * (last < 0 ? 0 : step[std::size_t(last)]));
               });
}
struct Tile final : Kernel {
  explicit Tile(const KernelSpec& s) : multiples(s.ints_attr("multiples")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(PartialShape dims, tiled(x.shape(), multiples, false));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    TROUPE_TRY(Shape times, Shape::make(multiples));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
    if (x.elements() != 0)
      for_tiles(times, x.shape(), shape, [&](std::int64_t at) {
        strided_copy(ctx, x.dtype(), x.shape(), x.raw(), strides_of(x.shape()),
                     Moves(x.dtype()).at(y.mutable_raw(), at), strides_of(shape));
      });
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  Ints multiples;
};
template <class T>
struct TileGrad final : Kernel {
  explicit TileGrad(const KernelSpec& s) : multiples(s.ints_attr("multiples")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    TROUPE_TRY(Ints dims, host_ints(ctx.input(1), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(PartialShape whole, tiled(shape, multiples, false));
    if (whole != PartialShape(dy.shape()))
      return invalid_argument("dy is " + dy.shape().text() + ", not " + whole.text());
    TROUPE_TRY(Shape times, Shape::make(multiples));
    using Sum = Compute<T>;  // of f16 and bf16 rounded once, at the end
    TROUPE_TRY(Tensor sums, ctx.allocate(dtype_of<Sum>, shape));
    Sum* out = sums.mutable_data<Sum>();
    std::fill_n(out, sums.elements(), Sum(0));
    const Strides from = strides_of(dy.shape()), to = strides_of(shape);
    if (sums.elements() != 0)
      for_tiles(times, shape, dy.shape(), [&](std::int64_t at) {
        strided_rows(shape, from, to, {0, row_count(shape)},
                     [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                       const T* row = dy.data<T>() + at + a;
                       for (std::int64_t i = 0; i < n; ++i) out[b + i] += Sum(row[i]);
                     });
      });
    if constexpr (std::is_same_v<Sum, T>) {
      ctx.set_output(0, std::move(sums));
    } else {
      TROUPE_TRY(Tensor dx, ctx.allocate(dtype_of<T>, shape));
      std::transform(out, out + sums.elements(), dx.mutable_data<T>(), [](Sum x) { return T(x); });
      ctx.set_output(0, std::move(dx));
    }
    return ok_status();
  }
  Ints multiples;
};
// A repeated dimension of a tensor, with those behind it that are not.
struct Repeated {
  std::int64_t copies, extent;
};
std::vector<Repeated> repeated(const Shape& shape, const Ints& multiples) {
  std::vector<Repeated> dims;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t m = multiples[std::size_t(i)], d = shape.dim(i);
    if (m == 1 && !dims.empty())
      dims.back().extent *= d;
    else
      dims.push_back({m, d});
  }
  return dims;
}
std::int64_t elements(const std::vector<Repeated>& dims, bool with_copies) {
  std::int64_t n = 1;
  for (const Repeated& d : dims) n *= d.extent * (with_copies ? d.copies : 1);
  return n;
}

// One dimension after the other, from the last.
class TileOnGpu final : public cuda::DeviceKernel {
 public:
  explicit TileOnGpu(const KernelSpec& s)
      : multiples_(s.ints_attr("multiples")), repeat_(s.type()) {}
  std::span<cuda::GpuFunction> functions() override { return repeat_.functions(); }
  Status compute(KernelContext& ctx) override {
    Tensor y = ctx.input(0);
    TROUPE_TRY(PartialShape dims, tiled(y.shape(), multiples_, false));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    if (shape.elements() == 0) {  // a part of the dimensions may have more than there can be
      TROUPE_TRY(y, ctx.allocate(y.dtype(), shape));
      ctx.set_output(0, std::move(y));
      return ok_status();
    }
    std::vector<Repeated> left = repeated(y.shape(), multiples_);
    for (std::int64_t behind = 1; !left.empty();) {
      const Repeated last = left.back();
      left.pop_back();
      const std::int64_t outer = elements(left, false), row = last.extent * behind;
      if (last.copies != 1) {
        TROUPE_TRY(y, repeat_(ctx, y, Shape{outer, 1, row}, Shape{outer, last.copies, row}));
      }
      behind = last.copies * row;
    }
    ctx.set_output(0, y.reshaped(shape));
    return ok_status();
  }

 private:
  const Ints multiples_;
  cuda::Repeater repeat_;
};
// All dimensions at once, so that f16 and bf16 are rounded once, if a tensor has as many.
class TileGradOnGpu final : public cuda::DeviceKernel {
 public:
  explicit TileGradOnGpu(const KernelSpec& s)
      : multiples_(s.ints_attr("multiples")), sum_(typeid(formula::SumOf), s.type(), false) {}
  std::span<cuda::GpuFunction> functions() override { return sum_.functions(); }
  Status compute(KernelContext& ctx) override {
    Tensor sum = ctx.input(0);
    TROUPE_TRY(Ints dims, host_ints(ctx.input(1), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(PartialShape whole, tiled(shape, multiples_, false));
    if (whole != PartialShape(sum.shape()))
      return invalid_argument("dy is " + sum.shape().text() + ", not " + whole.text());
    std::vector<Repeated> left = repeated(shape, multiples_);
    while (left.size() > kMaxRank / 2) {
      const Repeated last = left.back();
      left.pop_back();
      const std::int64_t outer = elements(left, true);
      TROUPE_TRY(sum, sum_(ctx, sum.reshaped(Shape{outer, last.copies, last.extent}),
                           {false, true, false}, Shape{outer, last.extent}));
      left.back().extent *= last.extent;
    }
    Ints all;
    std::vector<bool> copies;
    for (const Repeated& each : left) {
      all.insert(all.end(), {each.copies, each.extent});
      copies.insert(copies.end(), {true, false});
    }
    TROUPE_TRY(const Shape view, Shape::make(all));
    TROUPE_TRY(sum, sum_(ctx, sum.reshaped(view), copies, shape));
    ctx.set_output(0, std::move(sum));
    return ok_status();
  }

 private:
  const Ints multiples_;
  cuda::Reducer sum_;
};
std::vector<Output> tile_grad(GradContext& c) {
  return {c.g.add("TileGrad", {c.dy[0], c.g.add("Shape", {c.x[0]})},
                  {{"multiples", c.ints_attr("multiples")}})};
}
std::vector<Output> tile_grad_grad(GradContext& c) {
  return {c.g.add("Tile", {c.dy[0]}, {{"multiples", c.ints_attr("multiples")}}), Output()};
}

}  // namespace

TROUPE_OPS(tile) {
  r.add({.name = "Tile",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"multiples: list(int)"},
         .shape = tile_shape,
         .grad = tile_grad,
         .doc = "x repeated multiples[i] times along dimension i."})
      .cpu(make_kernel<Tile>)
      .cuda(make_kernel<TileOnGpu>, kPlainTypes);
  r.add({.name = "TileGrad",
         .in = {"dy", "shape: i64"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"multiples: list(int)"},
         .shape = tile_grad_shape,
         .grad = tile_grad_grad,
         .host = {"shape"},
         .doc = "The sum over the copies that Tile made of a tensor of `shape`: its gradient."})
      .cpu(typed_kernel<TileGrad, FloatsAndComplex>)
      .cuda(make_kernel<TileGradOnGpu>);
}
