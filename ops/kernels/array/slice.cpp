// Slice and its gradient: a block of a tensor.
#include <fmt/core.h>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Ints = std::vector<std::int64_t>;

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
  return view_copy(ctx, shape, strides_of(x), offset_of(strides_of(x), begin));
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
  return place(ctx, shape, offset_of(strides_of(shape), begin), 0);
}
Status slice_add(KernelContext& ctx) {
  TROUPE_TRY(Ints begin, host_ints(ctx.input(2), "begin"));
  const Shape &shape = ctx.input(0).shape(), &dy = ctx.input(1).shape();
  TROUPE_TRY(slice_sizes(shape, begin, Ints(dy.dims().begin(), dy.dims().end())));
  return add_to_view(ctx, strides_of(shape), offset_of(strides_of(shape), begin));
}
std::vector<Output> slice_add_grad(GradContext& c) {
  Output size = c.g.add("Shape", {c.x[1]}, {{"out_type", c.type_attr("Tindex")}});
  return {c.dy[0], c.g.add("Slice", {c.dy[0], c.x[2], size}), Output(), Output()};
}
std::vector<Output> slice_grad_grad(GradContext& c) {
  Output size = c.g.add("Shape", {c.x[0]}, {{"out_type", c.type_attr("Tindex")}});
  return {c.g.add("Slice", {c.dy[0], c.x[1], size}), Output(), Output()};
}
Status slice_grad_shape(InferenceContext& c) { return set_shape_from(c, 2); }

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
         .doc = "The block of x that starts at `begin` and has `size` elements in each dimension; "
                "-1 means up to the end."})
      .cpu(kernel<slice>)
      .cuda(cuda::moving<kernel<slice>>, kPlainTypes);
  r.add({.name = "SliceGrad",
         .in = {"dy", "begin: Tindex", "shape: i64"},
         .out = {"dx"},
         .types = kPlainTypes,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = slice_grad_shape,
         .grad = slice_grad_grad,
         .host = {"begin", "shape"},
         .added = "SliceAdd",
         .doc = "Zeros of `shape` with dy placed at `begin`: the gradient of Slice."})
      .cpu(kernel<slice_grad_kernel>)
      .cuda(cuda::moving<kernel<slice_grad_kernel>>);
  r.add({.name = "SliceAdd",
         .in = {"sums", "dy", "begin: Tindex", "shape: i64"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = {"Tindex: type {i32 i64} = i64"},
         .shape = same_shape,
         .grad = slice_add_grad,
         .host = {"begin", "shape"},
         .doc = "sums (of `shape`) with dy added to the block at `begin`: sums + SliceGrad(...)."})
      .cpu(kernel<slice_add>)
      .cuda(cuda::moving<kernel<slice_add>>);
}
