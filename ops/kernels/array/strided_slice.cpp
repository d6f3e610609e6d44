// StridedSlice: a tensor by a list of indices, ranges and marks, as x[2, 1:5, ::-1, newaxis, ...].
//
// Entry i of the list is, by bit i of a mask: a new dimension; or an ellipsis, all dimensions that
// no other entry takes; or one index, whose dimension goes (shrink); or a range from begin to end
// by stride. The masks alone say which dimension an entry is about, the numbers how much of it.
#include <fmt/core.h>

#include <bit>

#include "ops/cuda/strided.hpp"
#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/grad.hpp"
#include "ops/kernels/support/moves.hpp"
#include "ops/kernels/support/types.hpp"
#include "ops/kernels/support/views.hpp"

using namespace troupe;

namespace {

using Known = std::optional<std::int64_t>;

constexpr int kMostEntries = 2 * kMaxRank;

struct Masks {
  std::uint64_t begin, end, ellipsis, new_axis, shrink;

  template <class Attrs>  // InferenceContext or KernelSpec
  static Masks of(const Attrs& attrs) {
    const auto mask = [&](const char* name) { return std::uint64_t(attrs.int_attr(name)); };
    return {mask("begin_mask"), mask("end_mask"), mask("ellipsis_mask"), mask("new_axis_mask"),
            mask("shrink_axis_mask")};
  }
};

// The numbers of the list, as far as they are known.
struct Entries {
  std::vector<Known> begin, end, stride;
};

// One step along the result: a part of a dimension of x, or a new one.
struct Part {
  int axis = -1;         // of x; -1: a new dimension
  bool shrinks = false;  // of one index, and no dimension of the result
  Known begin = 0, size = 1, stride = 1;
};

// Where a range or an index begins and how many elements it has, of a dimension of size `d`.
Expected<Part> part_of(int axis, std::int64_t d, Known begin, Known end, Known stride, bool shrink,
                       bool from_start, bool to_end) {
  Part part{axis, shrink, {}, {}, stride};
  if (stride && *stride == 0) return invalid_argument("a stride is 0");
  if (shrink) {
    part.size = part.stride = 1;
    if (!begin || d < 0) return part;
    part.begin = *begin < 0 ? *begin + d : *begin;
    if (*part.begin < 0 || *part.begin >= d)
      return out_of_range(
          fmt::format("index {} of dimension {}, which has {} elements", *begin, axis, d));
    return part;
  }
  if (!stride || d < 0 || !(begin || from_start) || !(end || to_end)) {
    part.begin.reset();
    return part;
  }
  const bool up = *stride > 0;
  const auto bounded = [&](std::int64_t at) {
    return std::clamp<std::int64_t>(at < 0 ? at + d : at, up ? 0 : -1, up ? d : d - 1);
  };
  const std::int64_t first = from_start ? (up ? 0 : d - 1) : bounded(*begin);
  const std::int64_t last = to_end ? (up ? d : -1) : bounded(*end);
  const std::int64_t span = up ? last - first : first - last;
  const std::uint64_t step = up ? std::uint64_t(*stride) : 0 - std::uint64_t(*stride);
  part.size = span <= 0 ? 0 : std::int64_t(std::uint64_t(span - 1) / step) + 1;
  part.begin = *part.size == 0 ? 0 : first;
  if (*part.size <= 1) part.stride = 1;  // never taken, and could be beyond all memory
  return part;
}

Part whole(int axis, const PartialShape& x) {
  return {axis, false, 0, x.known(axis) ? Known(x.dim(axis)) : Known(), 1};
}

// REQUIRES: x has a known rank.
Expected<std::vector<Part>> parts_of(const Masks& masks, const Entries& entries,
                                     const PartialShape& x) {
  const auto n = int(entries.begin.size());
  const std::uint64_t listed = (std::uint64_t{1} << n) - 1;
  const std::uint64_t ellipsis = masks.ellipsis & listed;
  if (std::popcount(ellipsis) > 1) return invalid_argument("more than one ellipsis");
  const std::uint64_t taking = listed & ~ellipsis & ~masks.new_axis;
  const int rest = x.rank() - std::popcount(taking);
  if (rest < 0)
    return invalid_argument(
        fmt::format("{} indices and ranges for {}", std::popcount(taking), x.text()));
  std::vector<Part> parts;
  int axis = 0;
  const auto take_rest = [&] {
    for (int i = 0; i < rest; ++i) parts.push_back(whole(axis, x)), ++axis;
  };
  for (int i = 0; i < n; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    const auto k = std::size_t(i);
    if (ellipsis & bit) {
      take_rest();
    } else if (masks.new_axis & bit) {
      parts.push_back({});
    } else {
      TROUPE_TRY(Part part,
                 part_of(axis, x.dim(axis), entries.begin[k], entries.end[k], entries.stride[k],
                         masks.shrink & bit, masks.begin & bit, masks.end & bit));
      parts.push_back(part);
      ++axis;
    }
  }
  if (ellipsis == 0) take_rest();
  return parts;
}

Expected<PartialShape> shape_of(const std::vector<Part>& parts) {
  std::vector<std::int64_t> dims;
  for (const Part& part : parts)
    if (!part.shrinks) dims.push_back(part.size ? *part.size : PartialShape::kUnknown);
  if (dims.size() > std::size_t(kMaxRank))
    return invalid_argument(fmt::format("rank {} is above the limit of 8", dims.size()));
  return PartialShape::make(dims);
}

// The list of inputs `first` to `first` + 2; nullopt where not even its length is known.
Expected<std::optional<Entries>> known_entries(const InferenceContext& c, int first) {
  PartialShape length;
  for (int i = first; i < first + 3; ++i) {
    TROUPE_TRY(c.want_rank(i, 1));
    auto merged = PartialShape::merge(length, c.shape(i));
    if (!merged.ok()) return invalid_argument("begin, end and strides differ in length");
    length = std::move(merged).value();
  }
  if (!length.fully_known()) return std::optional<Entries>();
  const std::int64_t n = length.dim(0);
  if (n > kMostEntries)
    return invalid_argument(fmt::format("{} entries are above the limit of {}", n, kMostEntries));
  Entries entries;
  for (auto [i, list] : {std::pair(first, &entries.begin), std::pair(first + 1, &entries.end),
                         std::pair(first + 2, &entries.stride)}) {
    const KnownInts* known = c.known_ints(i);
    *list = known ? known->elements : std::vector<Known>(std::size_t(n));
  }
  return std::optional<Entries>(std::move(entries));
}

Expected<Entries> entries_of(const KernelContext& c, int first) {
  Entries entries;
  for (auto [i, list] : {std::pair(first, &entries.begin), std::pair(first + 1, &entries.end),
                         std::pair(first + 2, &entries.stride)}) {
    TROUPE_TRY(auto values, host_ints(c.input(i), "the list"));
    list->assign(values.begin(), values.end());
  }
  const bool same =
      entries.begin.size() == entries.end.size() && entries.begin.size() == entries.stride.size();
  if (!same) return invalid_argument("begin, end and strides differ in length");
  if (entries.begin.size() > kMostEntries)
    return invalid_argument(
        fmt::format("{} entries are above the limit of {}", entries.begin.size(), kMostEntries));
  return entries;
}

// How the result lies in x.
struct View {
  Shape shape;
  Strides strides{};
  std::int64_t offset = 0;
};
Expected<View> view_of(const Masks& masks, const Entries& entries, const Shape& x) {
  TROUPE_TRY(auto parts, parts_of(masks, entries, x));
  TROUPE_TRY(PartialShape dims, shape_of(parts));
  TROUPE_TRY(Shape shape, Shape::make(dims.dims()));
  View view{.shape = shape};
  const Strides of_x = strides_of(x);
  std::size_t at = 0;
  for (const Part& part : parts) {
    const std::int64_t step = part.axis < 0 ? 0 : of_x[std::size_t(part.axis)];
    view.offset += *part.begin * step;
    if (!part.shrinks) view.strides[at++] = *part.stride * step;
  }
  return view;
}

Status strided_slice_shape(InferenceContext& c) {
  TROUPE_TRY(auto entries, known_entries(c, 1));
  if (!entries || !c.shape(0).known_rank()) return ok_status();
  TROUPE_TRY(auto parts, parts_of(Masks::of(c), *entries, c.shape(0)));
  TROUPE_TRY(PartialShape shape, shape_of(parts));
  c.set(0, std::move(shape));
  return ok_status();
}

// Of a list of dimensions: one of them, or some.
void strided_slice_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  if (!x || x->scalar) return;
  auto entries = known_entries(c, 1);
  if (!entries.ok() || !*entries) return;
  auto parts = parts_of(Masks::of(c), **entries, PartialShape{x->size()});
  if (!parts.ok()) return;
  if (parts->size() != 1 || !parts->front().begin || !parts->front().size) return;
  const Part& part = parts->front();
  if (!part.stride) return;
  KnownInts out{part.shrinks, {}};
  for (std::int64_t i = 0; i < *part.size; ++i)
    out.elements.push_back(x->elements[std::size_t(*part.begin + i * *part.stride)]);
  c.set_ints(0, std::move(out));
}

struct StridedSlice final : Kernel {
  explicit StridedSlice(const KernelSpec& s) : masks(Masks::of(s)) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(Entries entries, entries_of(ctx, 1));
    TROUPE_TRY(View view, view_of(masks, entries, x.shape()));
    TROUPE_TRY(Tensor y, ctx.allocate(x.dtype(), view.shape));
    TROUPE_TRY(copy_strided(ctx, x.dtype(), view.shape, Moves(x.dtype()).at(x.raw(), view.offset),
                            view.strides, y.mutable_raw(), strides_of(view.shape)));
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  Masks masks;
};

// Zeros of the shape of x, with dy where the slice took its elements from.
struct StridedSliceGrad final : Kernel {
  explicit StridedSliceGrad(const KernelSpec& s) : masks(Masks::of(s)) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& dy = ctx.input(0);
    TROUPE_TRY(auto dims, host_ints(ctx.input(1), "shape"));
    TROUPE_TRY(Shape shape, checked_shape(dims));
    TROUPE_TRY(Entries entries, entries_of(ctx, 2));
    TROUPE_TRY(View view, view_of(masks, entries, shape));
    if (view.shape != dy.shape())
      return invalid_argument("dy is " + dy.shape().text() + ", but the slice of " + shape.text() +
                              " is " + view.shape.text());
    TROUPE_TRY(Tensor dx, ctx.allocate(dy.dtype(), shape));
    TROUPE_TRY(fill_with(ctx, 0, dx));
    TROUPE_TRY(copy_strided(ctx, dy.dtype(), dy.shape(), dy.raw(), strides_of(dy.shape()),
                            Moves(dy.dtype()).at(dx.mutable_raw(), view.offset), view.strides));
    ctx.set_output(0, std::move(dx));
    return ok_status();
  }
  Masks masks;
};

struct StridedSliceAdd final : Kernel {
  explicit StridedSliceAdd(const KernelSpec& s) : masks(Masks::of(s)) {}
  Status compute(KernelContext& ctx) override {
    const Shape &shape = ctx.input(0).shape(), &dy = ctx.input(1).shape();
    TROUPE_TRY(Entries entries, entries_of(ctx, 3));
    TROUPE_TRY(View view, view_of(masks, entries, shape));
    if (view.shape != dy)
      return invalid_argument("dy is " + dy.text() + ", but the slice of " + shape.text() + " is " +
                              view.shape.text());
    return add_to_view(ctx, view.strides, view.offset);
  }
  Masks masks;
};

Status strided_slice_grad_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, c.listed_shape(1));
  TROUPE_TRY(auto entries, known_entries(c, 2));
  if (entries && shape.known_rank()) {
    TROUPE_TRY(auto parts, parts_of(Masks::of(c), *entries, shape));
    TROUPE_TRY(PartialShape taken, shape_of(parts));
    if (!PartialShape::merge(taken, c.shape(0)).ok())
      return invalid_argument("dy is " + c.shape(0).text() + ", but the slice of " + shape.text() +
                              " is " + taken.text());
  }
  c.set(0, std::move(shape));
  return ok_status();
}

AttrMap masks_of(const GradContext& c) {
  AttrMap masks;
  for (const char* name :
       {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
    masks.emplace(name, c.int_attr(name));
  return masks;
}
std::vector<Output> strided_slice_grad(GradContext& c) {
  const Output shape = c.g.add("Shape", {c.x[0]});
  return {c.g.add("StridedSliceGrad", {c.dy[0], shape, c.x[1], c.x[2], c.x[3]}, masks_of(c)),
          Output(), Output(), Output()};
}
std::vector<Output> strided_slice_grad_grad(GradContext& c) {
  return {c.g.add("StridedSlice", {c.dy[0], c.x[2], c.x[3], c.x[4]}, masks_of(c)), Output(),
          Output(), Output(), Output()};
}

std::vector<Output> strided_slice_add_grad(GradContext& c) {
  return {c.dy[0],  c.g.add("StridedSlice", {c.dy[0], c.x[3], c.x[4], c.x[5]}, masks_of(c)),
          Output(), Output(),
          Output(), Output()};
}

const std::vector<std::string> kAttrs = {
    "Tindex: type {i32 i64} = i64", "begin_mask: int = 0",    "end_mask: int = 0",
    "ellipsis_mask: int = 0",       "new_axis_mask: int = 0", "shrink_axis_mask: int = 0"};

}  // namespace

TROUPE_OPS(strided_slice) {
  r.add({.name = "StridedSlice",
         .in = {"x", "begin: Tindex", "end: Tindex", "strides: Tindex"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = kAttrs,
         .shape = strided_slice_shape,
         .value = strided_slice_ints,
         .grad = strided_slice_grad,
         .host = {"begin", "end", "strides"},
         .doc =
             "Along each dimension, the elements begin, begin + stride, ... before end; negative "
             "indices count from the end, and bounds are clipped. Bit i of a mask concerns entry "
             "i: begin_mask and end_mask, its range has no bound on that side; shrink_axis_mask, "
             "it is the single index `begin`, which must exist, and the dimension is removed; "
             "new_axis_mask, it is a new dimension of size 1; ellipsis_mask (one bit), it is all "
             "dimensions that no other entry takes. Dimensions after the last entry are taken "
             "whole. Ellipsis takes precedence over a new dimension, and that over an index."})
      .cpu(make_kernel<StridedSlice>)
      .cuda(cuda::moving<make_kernel<StridedSlice>>, kPlainTypes);
  r.add({.name = "StridedSliceGrad",
         .in = {"dy", "shape: i64", "begin: Tindex", "end: Tindex", "strides: Tindex"},
         .out = {"dx"},
         .types = kPlainTypes,
         .attrs = kAttrs,
         .shape = strided_slice_grad_shape,
         .grad = strided_slice_grad_grad,
         .host = {"shape", "begin", "end", "strides"},
         .added = "StridedSliceAdd",
         .doc = "Zeros of `shape` with dy where StridedSlice takes elements: its gradient."})
      .cpu(make_kernel<StridedSliceGrad>)
      .cuda(cuda::moving<make_kernel<StridedSliceGrad>>);
  r.add({.name = "StridedSliceAdd",
         .in = {"sums", "dy", "shape: i64", "begin: Tindex", "end: Tindex", "strides: Tindex"},
         .out = {"dx"},
         .types = kFloatsAndComplex,
         .attrs = kAttrs,
         .shape = same_shape,
         .grad = strided_slice_add_grad,
         .host = {"shape", "begin", "end", "strides"},
         .doc = "sums (of `shape`) with dy added where StridedSlice takes elements: sums + "
                "StridedSliceGrad(...)."})
      .cpu(make_kernel<StridedSliceAdd>)
      .cuda(cuda::moving<make_kernel<StridedSliceAdd>>);
}
