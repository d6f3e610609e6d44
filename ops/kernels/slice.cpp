// Rectangular moves: Slice, Pad, Tile, Reverse, Transpose.
#include <fmt/core.h>

#include "troupe/ops/kernels/args.hpp"
#include "troupe/ops/kernels/grad.hpp"
#include "troupe/ops/kernels/moves.hpp"
#include "troupe/ops/kernels/types.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

std::int64_t dot(const Strides& strides, const Ints& index) {
  std::int64_t at = 0;
  for (std::size_t i = 0; i < index.size(); ++i) at += strides[i] * index[i];
  return at;
}
Status wrong_length(std::string_view what, std::size_t n, int rank) {
  return invalid_argument(fmt::format("{} has {} entries for rank {}", what, n, rank));
}

// Output = input seen through other strides, from an element offset on.
Status view_copy(KernelContext& ctx, const Shape& shape, const Strides& strides,
                 std::int64_t offset) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  strided_copy(ctx, x.dtype(), shape, Moves(x.dtype()).at(x.raw(), offset), strides,
               y.mutable_raw(), strides_of(shape));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

// Output = zeros (or `value`) of `shape`, input 0 placed at element `offset`.
Status place(KernelContext& ctx, const Shape& shape, std::int64_t offset, double value) {
  const Tensor& x = ctx.input(0);
  TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), shape));
  TROUPE_TRY(dispatch<Status>(NumbersAndBool{}, x.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T background = T(Compute<T>(value));
    fill_tensor(ctx, &background, y);
    return ok_status();
  }));
  strided_copy(ctx, x.dtype(), x.shape(), x.raw(), strides_of(x.shape()),
               Moves(x.dtype()).at(y.mutable_raw(), offset), strides_of(shape));
  ctx.set_output(0, std::move(y));
  return ok_status();
}

// The sizes of a slice, -1 resolved to "the rest". Unknown dimensions of x stay unchecked.
Expected<Ints> slice_sizes(const PartialShape& x, const Ints& begin, Ints size) {
  if (begin.size() != std::size_t(x.rank())) return wrong_length("begin", begin.size(), x.rank());
  if (size.size() != std::size_t(x.rank())) return wrong_length("size", size.size(), x.rank());
  for (int i = 0; i < x.rank(); ++i) {
    const auto k = std::size_t(i);
    const std::int64_t d = x.dim(i), wanted = size[k];
    if (wanted == -1 && x.known(i)) size[k] = d - begin[k];
    if (begin[k] < 0 || wanted < -1 || (x.known(i) && (begin[k] > d || size[k] > d - begin[k])))
      return invalid_argument(fmt::format("slice [{}, {} + {}) leaves dimension {} of {}", begin[k],
                                          begin[k], wanted, i, x.text()));
  }
  return size;
}
// What is known of a size follows from the list alone, but for "the rest", which needs where it
// begins as well.
Status slice_shape(InferenceContext& c) {
  auto begin = c.ints(1), size = c.ints(2);
  const KnownInts* listed = c.known_ints(2);
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) {
    if (listed)
      c.set(0, PartialShape::unknown_of_rank(int(std::min<std::int64_t>(listed->size(), 8))));
    return ok_status();
  }
  if (begin && size) {
    TROUPE_TRY(Ints sizes, slice_sizes(x, *begin, *size));
    TROUPE_TRY(PartialShape shape, PartialShape::make(sizes));
    c.set(0, std::move(shape));
    return ok_status();
  }
  PartialShape shape = PartialShape::unknown_of_rank(x.rank());
  const KnownInts* from = c.known_ints(1);
  for (int i = 0; listed && listed->size() == x.rank() && i < x.rank(); ++i) {
    const auto k = std::size_t(i);
    const auto& wanted = listed->elements[k];
    const bool starts = from && from->size() == x.rank() && from->elements[k];
    if (wanted && *wanted >= 0) shape.set_dim(i, *wanted);
    if (wanted && *wanted == -1 && starts && x.known(i) && *from->elements[k] >= 0 &&
        *from->elements[k] <= x.dim(i))
      shape.set_dim(i, x.dim(i) - *from->elements[k]);
  }
  c.set(0, std::move(shape));
  return ok_status();
}
void slice_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  auto begin = c.ints(1);
  const PartialShape& y = c.result()[0];
  if (!x || x->scalar || !begin || begin->size() != 1 || !y.fully_known() || y.rank() != 1) return;
  const std::int64_t at = (*begin)[0];
  if (at < 0 || at > x->size() || y.dim(0) > x->size() - at) return;
  auto first = x->elements.begin() + std::ptrdiff_t(at);
  c.set_ints(0, {false, {first, first + std::ptrdiff_t(y.dim(0))}});
}
Status slice(KernelContext& ctx) {
  const Shape& x = ctx.input(0).shape();
  TROUPE_TRY(Ints begin, host_ints(ctx.input(1), "begin"));
  TROUPE_TRY(Ints size, host_ints(ctx.input(2), "size"));
  TROUPE_TRY(Ints sizes, slice_sizes(x, begin, size));
  TROUPE_TRY(Shape shape, checked_shape(sizes));
  return view_copy(ctx, shape, strides_of(x), dot(strides_of(x), begin));
}
std::vector<Output> slice_grad(GradContext& c) {
  return {c.g.add("SliceGrad", {c.dy[0], c.x[1], c.g.add("Shape", {c.x[0]})}), Output(), Output()};
}
Status slice_grad_kernel(KernelContext& ctx) {
  TROUPE_TRY(Ints begin, host_ints(ctx.input(1), "begin"));
  TROUPE_TRY(Ints dims, host_ints(ctx.input(2), "shape"));
  TROUPE_TRY(Shape shape, checked_shape(dims));
  const Shape& dy = ctx.input(0).shape();
  TROUPE_TRY(slice_sizes(shape, begin, Ints(dy.dims().begin(), dy.dims().end())));
  return place(ctx, shape, dot(strides_of(shape), begin), 0);
}
std::vector<Output> slice_grad_grad(GradContext& c) {
  Output size = c.g.add("Shape", {c.x[0]}, {{"out_type", c.type_attr("Tindex")}});
  return {c.g.add("Slice", {c.dy[0], c.x[1], size}), Output(), Output()};
}
Status slice_grad_shape(InferenceContext& c) { return set_shape_from(c, 2); }

// paddings: before and after, dimension by dimension.
Expected<PartialShape> padded(const PartialShape& x, const Ints& paddings) {
  if (!x.known_rank()) return x;
  if (paddings.size() != 2 * std::size_t(x.rank()))
    return wrong_length("paddings (before and after per dimension)", paddings.size(), x.rank());
  PartialShape y = x;
  for (int i = 0; i < x.rank(); ++i) {
    std::int64_t before = paddings[2 * std::size_t(i)], after = paddings[2 * std::size_t(i) + 1];
    std::int64_t d = x.known(i) ? x.dim(i) : 0;
    if (before < 0 || after < 0 || __builtin_add_overflow(d, before, &d) ||
        __builtin_add_overflow(d, after, &d))
      return invalid_argument(fmt::format("paddings {} and {} of dimension {}", before, after, i));
    if (x.known(i)) y.set_dim(i, d);
  }
  return y;
}
Status pad_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, padded(c.shape(0), c.ints_attr("paddings")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Pad final : Kernel {
  explicit Pad(const KernelSpec& s)
      : paddings(s.ints_attr("paddings")), value(s.float_attr("value")) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(PartialShape dims, padded(ctx.input(0).shape(), paddings));
    TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
    std::int64_t offset = 0;
    const Strides strides = strides_of(shape);
    for (std::size_t i = 0; i < std::size_t(shape.rank()); ++i)
      offset += strides[i] * paddings[2 * i];
    return place(ctx, shape, offset, value);
  }
  Ints paddings;
  double value;
};
std::vector<Output> pad_grad(GradContext& c) {
  Ints begin;
  const Ints& paddings = c.ints_attr("paddings");
  for (std::size_t i = 0; i < paddings.size(); i += 2) begin.push_back(paddings[i]);
  return {c.g.add("Slice", {c.dy[0], i64_const(c.g, begin), c.g.add("Shape", {c.x[0]})})};
}

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
  Strides step = strides_of(tiled);
  for (int i = 0; i < one.rank(); ++i) step[std::size_t(i)] *= one.dim(i);
  if (multiples.elements() == 0) return;
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
    TROUPE_TRY(Tensor dx, ctx.allocate(dtype_of<T>, shape));
    T* out = dx.mutable_data<T>();
    std::fill_n(out, dx.elements(), T(0));
    const Strides from = strides_of(dy.shape()), to = strides_of(shape);
    for_tiles(times, shape, dy.shape(), [&](std::int64_t at) {
      if (dx.elements() == 0) return;
      strided_rows(shape, from, to, {0, row_count(shape)},
                   [&](std::int64_t a, std::int64_t b, std::int64_t n) {
                     const T* row = dy.data<T>() + at + a;
                     for (std::int64_t i = 0; i < n; ++i) out[b + i] = T(out[b + i] + row[i]);
                   });
    });
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }
  Ints multiples;
};
std::vector<Output> tile_grad(GradContext& c) {
  return {c.g.add("TileGrad", {c.dy[0], c.g.add("Shape", {c.x[0]})},
                  {{"multiples", c.ints_attr("multiples")}})};
}
std::vector<Output> tile_grad_grad(GradContext& c) {
  return {c.g.add("Tile", {c.dy[0]}, {{"multiples", c.ints_attr("multiples")}}), Output()};
}

Status reverse_shape(InferenceContext& c) {
  if (c.shape(0).known_rank()) TROUPE_TRY(axis_set(c.ints_attr("axes"), c.shape(0).rank()));
  return same_shape(c);
}
struct Reverse final : Kernel {
  explicit Reverse(const KernelSpec& s) : axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    TROUPE_TRY(auto flipped, axis_set(axes, shape.rank()));
    Strides strides = strides_of(shape);
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < flipped.size(); ++i) {
      if (!flipped[i]) continue;
      offset += strides[i] * std::max<std::int64_t>(0, shape.dim(int(i)) - 1);
      strides[i] = -strides[i];
    }
    return view_copy(ctx, shape, strides, offset);
  }
  Ints axes;
};
std::vector<Output> reverse_grad(GradContext& c) {
  return {c.g.add("Reverse", {c.dy[0]}, {{"axes", c.ints_attr("axes")}})};
}

// An empty perm reverses the dimensions.
Expected<Ints> checked_perm(Ints perm, int rank) {
  if (perm.empty())
    for (int i = rank - 1; i >= 0; --i) perm.push_back(i);
  if (perm.size() != std::size_t(rank)) return wrong_length("perm", perm.size(), rank);
  std::vector<bool> seen(perm.size());
  for (std::int64_t& p : perm) {
    TROUPE_TRY(p, checked_axis(p, rank));
    if (seen[std::size_t(p)])
      return invalid_argument(fmt::format("perm names dimension {} twice", p));
    seen[std::size_t(p)] = true;
  }
  return perm;
}
Status transpose_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return ok_status();
  TROUPE_TRY(Ints perm, checked_perm(c.ints_attr("perm"), x.rank()));
  PartialShape y = x;
  for (int i = 0; i < x.rank(); ++i) y.set_dim(i, x.dim(int(perm[std::size_t(i)])));
  c.set(0, std::move(y));
  return ok_status();
}
struct Transpose final : Kernel {
  explicit Transpose(const KernelSpec& s) : perm(s.ints_attr("perm")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(Ints order, checked_perm(perm, x.rank()));
    const Strides from = strides_of(x);
    Strides strides{};
    Shape y = x;
    for (std::size_t i = 0; i < order.size(); ++i) {
      y.set_dim(int(i), x.dim(int(order[i])));
      strides[i] = from[std::size_t(order[i])];
    }
    return view_copy(ctx, y, strides, 0);
  }
  Ints perm;
};
std::vector<Output> transpose_grad(GradContext& c) {
  const Ints& perm = c.ints_attr("perm");
  Ints inverse(perm.size());
  const auto rank = std::int64_t(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i)
    inverse[std::size_t(perm[i] < 0 ? perm[i] + rank : perm[i])] = std::int64_t(i);
  return {c.g.add("Transpose", {c.dy[0]}, {{"perm", inverse}})};
}

}  // namespace

TROUPE_OPS(slice) {
  r.add({.name = "Slice",
         .in = {"x", "begin: Tindex", "size: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = slice_shape,
         .value = slice_ints,
         .grad = slice_grad,
         .host = {"begin", "size"},
         .doc = "The block of x that starts at `begin` and has `size` elements along each "
                "dimension; -1 means the rest."})
      .cpu(kernel<slice>);
  r.add({.name = "SliceGrad",
         .in = {"dy", "begin: Tindex", "shape: i64"},
         .out = {"dx"},
         .types = kNumbersAndBool,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = slice_grad_shape,
         .grad = slice_grad_grad,
         .host = {"begin", "shape"},
         .doc = "Zeros of `shape` with dy placed at `begin`: the gradient of Slice."})
      .cpu(kernel<slice_grad_kernel>);
  r.add({.name = "Pad",
         .in = {"x"},
         .out = {"y"},
         .types = kNumbersAndBool,
         .attrs = {"paddings: list(int)", "value: float = 0.0"},
         .shape = pad_shape,
         .grad = pad_grad,
         .doc = "x in a frame of `value`. The list gives how much goes before and after, dimension "
                "by dimension: [before0, after0, before1, after1, ...]."})
      .cpu(make_kernel<Pad>);
}

TROUPE_OPS(tile) {
  r.add({.name = "Tile",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"multiples: list(int)"},
         .shape = tile_shape,
         .grad = tile_grad,
         .doc = "x repeated multiples[i] times along each dimension i."})
      .cpu(make_kernel<Tile>);
  r.add({.name = "TileGrad",
         .in = {"dy", "shape: i64"},
         .out = {"dx"},
         .types = kFloats,
         .attrs = {"multiples: list(int)"},
         .shape = tile_grad_shape,
         .grad = tile_grad_grad,
         .host = {"shape"},
         .doc = "The sum over the copies that Tile made of a tensor of `shape`."})
      .cpu(typed_kernel<TileGrad, Floats>);
}

TROUPE_OPS(transpose) {
  r.add({.name = "Transpose",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"perm: list(int) = []"},
         .shape = transpose_shape,
         .grad = transpose_grad,
         .doc = "Dimension i of the result is dimension perm[i] of x; without perm, the dimensions "
                "in reverse order."})
      .cpu(make_kernel<Transpose>);
  r.add({.name = "Reverse",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axes: list(int) = []"},
         .shape = reverse_shape,
         .grad = reverse_grad,
         .doc = "x with the order along `axes` turned around; along all of them when the list is "
                "empty."})
      .cpu(make_kernel<Reverse>);
}
