// Joining tensors along a dimension and taking them apart: Concat, Split, Pack, Unpack.
//
// Along one dimension every tensor is [outer, extent, inner]; what is copied are rows of
// extent * inner elements. Joined and parts differ only in who is read and who is written.
#include <fmt/core.h>

#include "troupe/ops/kernels/args.hpp"
#include "troupe/ops/kernels/moves.hpp"
#include "troupe/ops/kernels/types.hpp"

using namespace troupe;

namespace {

// Copies between `joined`, whose rows are `row` elements, and parts whose rows have the widths
// given. `copy(part, part offset, joined offset, n)`.
template <class Copy>
void walk(const KernelContext& ctx, std::int64_t outer, const std::vector<std::int64_t>& widths,
          Copy&& copy) {
  const std::int64_t row = std::accumulate(widths.begin(), widths.end(), std::int64_t{0});
  const Chunks chunks = row_chunks(outer, row);
  if (chunks.count == 0 || row == 0) return;
  ctx.parallel(chunks.count, [&](std::int64_t c) {
    for (std::int64_t o = chunks[c].begin; o < chunks[c].end; ++o) {
      std::int64_t at = o * row;
      for (std::size_t p = 0; p < widths.size(); at += widths[p], ++p)
        if (widths[p] != 0) copy(p, o * widths[p], at, widths[p]);
    }
  });
}

Expected<Tensor> join(const KernelContext& ctx, const Shape& shape, int axis,
                      const std::vector<std::int64_t>& widths) {
  TROUPE_TRY(Tensor y, ctx.allocate(ctx.input(0).dtype(), shape));
  const Moves moves(y.dtype());
  walk(ctx, shape.elements(0, axis), widths,
       [&](std::size_t p, std::int64_t from, std::int64_t to, std::int64_t n) {
         moves.copy(moves.at(ctx.input(int(p)).raw(), from), n, moves.at(y.mutable_raw(), to));
       });
  return y;
}

// Parts of the given shapes, which fill input 0 along `axis`.
Status take_apart(KernelContext& ctx, const std::vector<Shape>& shapes, int axis,
                  const std::vector<std::int64_t>& widths) {
  const Tensor& x = ctx.input(0);
  std::vector<Tensor> parts;
  for (const Shape& shape : shapes) {
    TROUPE_TRY(Tensor part, ctx.allocate(x.dtype(), shape));
    parts.push_back(std::move(part));
  }
  const Moves moves(x.dtype());
  walk(ctx, x.shape().elements(0, axis), widths,
       [&](std::size_t p, std::int64_t to, std::int64_t from, std::int64_t n) {
         moves.copy(moves.at(x.raw(), from), n, moves.at(parts[p].mutable_raw(), to));
       });
  for (std::size_t p = 0; p < parts.size(); ++p) ctx.set_output(int(p), std::move(parts[p]));
  return ok_status();
}

// The shape of `shapes` joined along `axis`; -1 where unknown.
Expected<PartialShape> joined(const std::vector<PartialShape>& shapes, std::int64_t axis) {
  PartialShape all;  // what is known of the dimensions but `axis`
  std::int64_t sum = 0;
  for (const PartialShape& s : shapes) {
    if (!s.known_rank()) {
      sum = -1;
      continue;
    }
    TROUPE_TRY(int a, checked_axis(axis, s.rank()));
    sum = sum < 0 || !s.known(a) ? -1 : sum + s.dim(a);
    PartialShape rest = s;
    rest.set_dim(a, PartialShape::kUnknown);
    auto merged = PartialShape::merge(all, rest);
    if (!merged.ok())
      return invalid_argument(fmt::format("cannot join {} along axis {}: the others have {}",
                                          s.text(), axis, all.text()));
    all = std::move(merged).value();
  }
  if (!all.known_rank()) return all;
  TROUPE_TRY(int a, checked_axis(axis, all.rank()));
  all.set_dim(a, sum);
  return all;
}

Status concat_shape(InferenceContext& c) {
  std::vector<PartialShape> shapes;
  for (int i = 0; i < c.inputs(); ++i) shapes.push_back(c.shape(i));
  TROUPE_TRY(PartialShape shape, joined(shapes, c.int_attr("axis")));
  c.set(0, std::move(shape));
  return ok_status();
}
// Lists and scalars one after another: what Concat and Pack make of shapes.
void joined_ints(InferenceContext& c) {
  if (c.result()[0].known_rank() && c.result()[0].rank() != 1) return;
  KnownInts out;
  for (int i = 0; i < c.inputs(); ++i) {
    const KnownInts* part = c.known_ints(i);
    const PartialShape& shape = c.shape(i);
    if (part)
      out.elements.insert(out.elements.end(), part->elements.begin(), part->elements.end());
    else if (shape.fully_known() && shape.shape().elements() <= std::int64_t(kMostKnownInts))
      out.elements.resize(out.elements.size() + std::size_t(shape.shape().elements()));
    else
      return;
    if (out.elements.size() > kMostKnownInts) return;
  }
  c.set_ints(0, std::move(out));
}
struct Concat final : Kernel {
  explicit Concat(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    std::vector<PartialShape> shapes;
    for (int i = 0; i < ctx.inputs(); ++i) shapes.push_back(ctx.input(i).shape());
    TROUPE_TRY(PartialShape shape, joined(shapes, axis));
    TROUPE_TRY(Shape whole, Shape::make(shape.dims()));
    TROUPE_TRY(int a, checked_axis(axis, whole.rank()));
    std::vector<std::int64_t> widths;
    for (int i = 0; i < ctx.inputs(); ++i)
      widths.push_back(ctx.input(i).shape().elements(a, whole.rank()));
    TROUPE_TRY(Tensor y, join(ctx, whole, a, widths));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};

// One part per entry of `shapes`: shapes of tensors that Concat joined.
Status concat_grad_shape(InferenceContext& c) {
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(PartialShape shape, c.listed_shape(i));
    c.set(i - 1, std::move(shape));
  }
  return ok_status();
}
struct ConcatGrad final : Kernel {
  explicit ConcatGrad(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& whole = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, whole.rank()));
    std::vector<Shape> shapes;
    std::vector<PartialShape> partial;
    std::vector<std::int64_t> widths;
    for (int i = 1; i < ctx.inputs(); ++i) {
      TROUPE_TRY(auto dims, host_ints(ctx.input(i), "shapes"));
      TROUPE_TRY(Shape shape, checked_shape(dims));
      shapes.push_back(shape);
      partial.emplace_back(shape);
      widths.push_back(shape.rank() == whole.rank() ? shape.elements(a, whole.rank()) : 0);
    }
    TROUPE_TRY(PartialShape sum, joined(partial, axis));
    if (sum != PartialShape(whole))
      return invalid_argument(
          fmt::format("parts that join to {} cannot come from {}", sum.text(), whole.text()));
    return take_apart(ctx, shapes, a, widths);
  }
  std::int64_t axis;
};
std::vector<Output> concat_grad(GradContext& c) {
  if (c.x.size() == 1) return {c.dy[0]};
  NodeSpec spec{.op = "ConcatGrad", .inputs = {c.dy[0]}, .attrs = {{"axis", c.int_attr("axis")}}};
  for (Output x : c.x) spec.inputs.push_back(c.g.add("Shape", {x}));
  return c.g.add(std::move(spec)).outputs();
}

// One gradient for each part; joined again they are that of dy.
std::vector<Output> concat_grad_grad(GradContext& c) {
  std::vector<Output> dx(c.x.size());
  dx[0] = c.g.add(NodeSpec{.op = "Concat", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output();
  return dx;
}

// The sizes of the parts along the axis, from a total that may be unknown.
Expected<std::vector<std::int64_t>> part_sizes(const std::vector<std::int64_t>& sizes,
                                               std::int64_t n, std::int64_t total) {
  if (sizes.empty()) {
    if (n < 1 || (total >= 0 && total % n != 0))
      return invalid_argument(fmt::format("cannot split {} into {} equal parts", total, n));
    return std::vector<std::int64_t>(std::size_t(n), total < 0 ? -1 : total / n);
  }
  std::int64_t sum = 0;
  bool fits = std::int64_t(sizes.size()) == n;
  for (std::int64_t s : sizes) fits = fits && s >= 0 && !__builtin_add_overflow(sum, s, &sum);
  if (!fits || (total >= 0 && sum != total))
    return invalid_argument(
        fmt::format("{} sizes, sum {}, for {} parts of {}", sizes.size(), sum, n, total));
  return sizes;
}
Status split_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return part_sizes(c.ints_attr("sizes"), c.int_attr("N"), -1).status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), x.rank()));
  TROUPE_TRY(auto sizes, part_sizes(c.ints_attr("sizes"), c.int_attr("N"), x.dim(axis)));
  for (int i = 0; i < c.outputs(); ++i) {
    PartialShape part = x;
    part.set_dim(axis, sizes[std::size_t(i)]);
    c.set(i, std::move(part));
  }
  return ok_status();
}
struct Split final : Kernel {
  explicit Split(const KernelSpec& s)
      : axis(s.int_attr("axis")), n(s.int_attr("N")), sizes(s.ints_attr("sizes")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, x.rank()));
    TROUPE_TRY(auto parts, part_sizes(sizes, n, x.dim(a)));
    std::vector<Shape> shapes(parts.size(), x);
    std::vector<std::int64_t> widths;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      shapes[p].set_dim(a, parts[p]);
      widths.push_back(shapes[p].elements(a, x.rank()));
    }
    return take_apart(ctx, shapes, a, widths);
  }
  std::int64_t axis, n;
  std::vector<std::int64_t> sizes;
};
void split_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  if (!x || x->scalar) return;
  auto first = x->elements.begin();
  for (int i = 0; i < c.outputs(); ++i) {
    const PartialShape& part = c.result()[std::size_t(i)];
    if (!part.fully_known() || part.rank() != 1 || part.dim(0) > x->elements.end() - first) return;
    c.set_ints(i, {false, {first, first + std::ptrdiff_t(part.dim(0))}});
    first += std::ptrdiff_t(part.dim(0));
  }
}
std::vector<Output> split_grad(GradContext& c) {
  return {c.g.add(NodeSpec{.op = "Concat", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output()};
}

Status pack_shape(InferenceContext& c) {
  PartialShape one = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    TROUPE_TRY(one, PartialShape::merge(one, c.shape(i)));
  }
  if (!one.known_rank()) return ok_status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), one.rank() + 1));
  auto dims = one.dims();
  dims.insert(dims.begin() + axis, c.inputs());
  TROUPE_TRY(PartialShape shape, PartialShape::make(dims));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Pack final : Kernel {
  explicit Pack(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& one = ctx.input(0).shape();
    for (int i = 1; i < ctx.inputs(); ++i)
      if (ctx.input(i).shape() != one)
        return invalid_argument(fmt::format("values[0] is {} and values[{}] {}", one.text(), i,
                                            ctx.input(i).shape().text()));
    TROUPE_TRY(int a, checked_axis(axis, one.rank() + 1));
    std::vector<std::int64_t> dims(one.dims().begin(), one.dims().end());
    dims.insert(dims.begin() + a, ctx.inputs());
    TROUPE_TRY(Shape whole, Shape::make(dims));
    TROUPE_TRY(Tensor y, join(ctx, whole, a,
                              std::vector<std::int64_t>(std::size_t(ctx.inputs()),
                                                        one.elements(a, one.rank()))));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::int64_t axis;
};
std::vector<Output> pack_grad(GradContext& c) {
  return c.g
      .add(NodeSpec{.op = "Unpack",
                    .inputs = {c.dy[0]},
                    .attrs = {{"axis", c.int_attr("axis")}, {"N", std::int64_t(c.x.size())}}})
      .outputs();
}

Status wrong_count(const PartialShape& x, int axis, std::int64_t n) {
  return invalid_argument(
      fmt::format("dimension {} of {} is not N = {}, the number of outputs", axis, x.text(), n));
}
Status unpack_shape(InferenceContext& c) {
  const PartialShape& x = c.shape(0);
  if (!x.known_rank()) return ok_status();
  TROUPE_TRY(int axis, c.axis(c.int_attr("axis"), x.rank()));
  if (x.known(axis) && x.dim(axis) != c.outputs()) return wrong_count(x, axis, c.outputs());
  auto dims = x.dims();
  dims.erase(dims.begin() + axis);
  TROUPE_TRY(PartialShape part, PartialShape::make(dims));
  for (int i = 0; i < c.outputs(); ++i) c.set(i, part);
  return ok_status();
}
struct Unpack final : Kernel {
  explicit Unpack(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    const Shape& x = ctx.input(0).shape();
    TROUPE_TRY(int a, checked_axis(axis, x.rank()));
    if (x.dim(a) != ctx.outputs()) return wrong_count(x, a, ctx.outputs());
    std::vector<std::int64_t> dims(x.dims().begin(), x.dims().end());
    dims.erase(dims.begin() + a);
    TROUPE_TRY(Shape part, Shape::make(dims));
    const auto n = std::size_t(ctx.outputs());
    return take_apart(ctx, std::vector<Shape>(n, part), a,
                      std::vector<std::int64_t>(n, part.elements(a, part.rank())));
  }
  std::int64_t axis;
};
void unpack_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  for (int i = 0; x && !x->scalar && x->size() == c.outputs() && i < c.outputs(); ++i)
    c.set_ints(i, {true, {x->elements[std::size_t(i)]}});
}
std::vector<Output> unpack_grad(GradContext& c) {
  return {c.g.add(NodeSpec{.op = "Pack", .inputs = c.dy, .attrs = {{"axis", c.int_attr("axis")}}})
              .output()};
}

}  // namespace

TROUPE_OPS(concat) {
  r.add({.name = "Concat",
         .in = {"values: T..."},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = 0"},
         .shape = concat_shape,
         .value = joined_ints,
         .grad = concat_grad,
         .doc =
             "The values one after another along `axis`, in which alone their shapes may differ; "
             "a negative axis counts from the end."})
      .cpu(make_kernel<Concat>);
  r.add({.name = "ConcatGrad",
         .in = {"dy", "shapes: Tshape..."},
         .out = {"dx: T..."},
         .types = kAllTypes,
         .attrs = {"Tshape: type {i64} = i64", "axis: int = 0"},
         .shape = concat_grad_shape,
         .grad = concat_grad_grad,
         .host = {"shapes"},
         .doc = "Takes dy apart into tensors of the given shapes, which must fill it along `axis`: "
                "the gradient of Concat."})
      .cpu(make_kernel<ConcatGrad>);
  r.add({.name = "Split",
         .in = {"x"},
         .out = {"parts: T..."},
         .types = kAllTypes,
         .attrs = {"axis: int = 0", "N: int", "sizes: list(int) = []"},
         .shape = split_shape,
         .value = split_ints,
         .grad = split_grad,
         .doc = "x cut along `axis` into N parts, equal ones or of the given sizes."})
      .cpu(make_kernel<Split>);
}

TROUPE_OPS(pack) {
  r.add({.name = "Pack",
         .in = {"values: T..."},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int = 0"},
         .shape = pack_shape,
         .value = joined_ints,
         .grad = pack_grad,
         .doc = "The values, all of one shape, stacked along a new dimension at `axis`."})
      .cpu(make_kernel<Pack>);
  r.add({.name = "Unpack",
         .in = {"x"},
         .out = {"parts: T..."},
         .types = kAllTypes,
         .attrs = {"axis: int = 0", "N: int"},
         .shape = unpack_shape,
         .value = unpack_ints,
         .grad = unpack_grad,
         .doc = "The N slices of x along `axis`, without that dimension: the inverse of Pack."})
      .cpu(make_kernel<Unpack>);
}
