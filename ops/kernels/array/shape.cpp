// Shapes as values, and ops that change nothing but a tensor's shape: they share its buffer.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// Output 0: the integers, as the host tensor that `out_type` asks for.
Status set_ints(KernelContext& ctx, DType type, const Shape& shape,
                std::span<const std::int64_t> values) {
  TROUPE_TRY(Tensor y, ctx.allocate_host(type, shape));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == DType::i64) {
      y.mutable_data<std::int64_t>()[i] = values[i];
    } else if (values[i] <= INT32_MAX) {
      y.mutable_data<std::int32_t>()[i] = std::int32_t(values[i]);
    } else {
      return out_of_range(fmt::format("{} does not fit i32; ask for out_type = i64", values[i]));
    }
  }
  ctx.set_output(0, std::move(y));
  return ok_status();
}

Status metadata_shape(InferenceContext& c) {
  if (c.op().def.name != "Shape") return scalar_shape(c);
  c.set(0, c.shape(0).known_rank() ? PartialShape{c.shape(0).rank()}
                                   : PartialShape::unknown_of_rank(1));
  return ok_status();
}
template <int What>  // 0: Shape, 1: Rank, 2: Size
Expected<std::unique_ptr<Kernel>> metadata(const KernelSpec& spec) {
  struct Metadata final : Kernel {
    explicit Metadata(DType t) : type(t) {}
    Status compute(KernelContext& ctx) override {
      const Shape& shape = ctx.input(0).shape();
      if (What == 0) return set_ints(ctx, type, Shape{shape.rank()}, shape.dims());
      const std::int64_t one = What == 1 ? shape.rank() : shape.elements();
      return set_ints(ctx, type, Shape{}, {&one, 1});
    }
    DType type;
  };
  return std::unique_ptr<Kernel>(new Metadata(spec.type("out_type")));
}
OpDef metadata_op(std::string name, ValueFn value, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y: out_type"},
          .types = kAllTypes,
          .attrs = {"out_type: type {i32 i64} = i64"},
          .shape = metadata_shape,
          .value = value,
          .no_gradient = "of the shape of x alone",
          .host = {"y"},
          .cheap = true,
          .doc = std::move(doc)};
}

// A list with unknown elements, which may turn out to be -1. What is left open alone follows from
// the number of elements.
Expected<PartialShape> partly_listed(const KnownInts& list, std::int64_t elements) {
  std::vector<std::int64_t> dims, known;
  for (const auto& d : list.elements) {
    dims.push_back(d.value_or(PartialShape::kUnknown));
    if (dims.back() >= 0) known.push_back(dims.back());
  }
  TROUPE_TRY(PartialShape shape, PartialShape::make(dims));
  TROUPE_TRY(Shape rest, Shape::make(known));
  const std::int64_t n = rest.elements();
  if (known.size() + 1 == dims.size() && elements >= 0 && n > 0 && elements % n == 0)
    shape.set_dim(int(std::find(dims.begin(), dims.end(), PartialShape::kUnknown) - dims.begin()),
                  elements / n);
  return shape;
}
Status reshape_shape(InferenceContext& c) {
  if (auto dims = c.ints(1)) {
    TROUPE_TRY(PartialShape shape, resolve_reshape(*dims, known_elements(c.shape(0))));
    c.set(0, std::move(shape));
    return ok_status();
  }
  if (const KnownInts* listed = c.known_ints(1)) {
    TROUPE_TRY(PartialShape shape, partly_listed(*listed, known_elements(c.shape(0))));
    c.set(0, std::move(shape));
    return ok_status();
  }
  TROUPE_TRY(c.want_rank(1, 1));
  if (!c.shape(1).fully_known()) return ok_status();
  if (c.shape(1).dim(0) > kMaxRank) return invalid_argument("the rank is above the limit of 8");
  c.set(0, PartialShape::unknown_of_rank(int(c.shape(1).dim(0))));
  return ok_status();
}
Status reshape(KernelContext& ctx) {
  TROUPE_TRY(auto dims, host_ints(ctx.input(1), "shape"));
  TROUPE_TRY(PartialShape shape, resolve_reshape(dims, ctx.input(0).elements()));
  ctx.set_output(0, ctx.input(0).reshaped(shape.shape()));
  return ok_status();
}
// A list stays a list, and one element may become a scalar or come of one.
void reshape_ints(InferenceContext& c) {
  const KnownInts* x = c.known_ints(0);
  const PartialShape& y = c.result()[0];
  if (!x || !y.fully_known() || y.rank() > 1 || y.shape().elements() != x->size()) return;
  c.set_ints(0, {y.rank() == 0, x->elements});
}
Output reshape_like(GradContext& c, Output dy, Output x) {
  return c.g.add("Reshape", {dy, c.g.add("Shape", {x})});
}
std::vector<Output> reshape_grad(GradContext& c) {
  return {reshape_like(c, c.dy[0], c.x[0]), Output()};
}
std::vector<Output> reshape_back(GradContext& c) { return {reshape_like(c, c.dy[0], c.x[0])}; }

Expected<PartialShape> expanded(const PartialShape& x, std::int64_t axis) {
  if (!x.known_rank()) return PartialShape::unknown();
  TROUPE_TRY(int at, checked_axis(axis, x.rank() + 1));
  auto dims = x.dims();
  dims.insert(dims.begin() + at, 1);
  return PartialShape::make(dims);
}
Status expand_dims_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, expanded(c.shape(0), c.int_attr("axis")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct ExpandDims final : Kernel {
  explicit ExpandDims(const KernelSpec& s) : axis(s.int_attr("axis")) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(PartialShape shape, expanded(ctx.input(0).shape(), axis));
    ctx.set_output(0, ctx.input(0).reshaped(shape.shape()));
    return ok_status();
  }
  std::int64_t axis;
};

// Without a list, all dimensions of size 1 go.
Expected<PartialShape> squeezed(const PartialShape& x, const std::vector<std::int64_t>& axes) {
  if (!x.known_rank()) return PartialShape::unknown();
  if (axes.empty() && !x.fully_known()) return PartialShape::unknown();
  TROUPE_TRY(auto named, axis_set(axes, x.rank()));
  std::vector<std::int64_t> dims;
  for (int i = 0; i < x.rank(); ++i) {
    const bool one = x.dim(i) == 1;
    if (!axes.empty() && named[std::size_t(i)] && x.known(i) && !one)
      return invalid_argument(
          fmt::format("cannot squeeze dimension {} of {}: it is not 1", i, x.text()));
    const bool goes = axes.empty() ? one : bool(named[std::size_t(i)]);
    if (!goes) dims.push_back(x.dim(i));
  }
  return PartialShape::make(dims);
}
Status squeeze_shape(InferenceContext& c) {
  TROUPE_TRY(PartialShape shape, squeezed(c.shape(0), c.ints_attr("axes")));
  c.set(0, std::move(shape));
  return ok_status();
}
struct Squeeze final : Kernel {
  explicit Squeeze(const KernelSpec& s) : axes(s.ints_attr("axes")) {}
  Status compute(KernelContext& ctx) override {
    TROUPE_TRY(PartialShape shape, squeezed(ctx.input(0).shape(), axes));
    ctx.set_output(0, ctx.input(0).reshaped(shape.shape()));
    return ok_status();
  }
  std::vector<std::int64_t> axes;
};
Status pass(KernelContext& ctx) {
  ctx.set_output(0, ctx.input(0));
  return ok_status();
}
Status nothing(KernelContext&) { return ok_status(); }
std::vector<Output> identity_grad(GradContext& c) { return {c.dy[0]}; }

OpDef identity(std::string name, GradFn grad, std::string doc) {
  return {.name = std::move(name),
          .in = {"x"},
          .out = {"y"},
          .types = std::string(kAllTypes) + " list",
          .shape = same_shape,
          .value = same_ints,
          .grad = grad,
          .no_gradient = grad == nullptr ? "as its name says" : "",
          .cheap = true,
          .doc = std::move(doc)};
}

}  // namespace

TROUPE_OPS(metadata) {
  r.add(metadata_op("Shape", shape_ints, "The shape of x as a vector in host memory."))
      .cpu(metadata<0>)
      .cuda(metadata<0>, kPlainTypes);
  r.add(metadata_op("Rank", rank_ints, "The number of dimensions of x, in host memory."))
      .cpu(metadata<1>)
      .cuda(metadata<1>, kPlainTypes);
  r.add(metadata_op("Size", size_ints, "The number of elements of x, in host memory."))
      .cpu(metadata<2>)
      .cuda(metadata<2>, kPlainTypes);
}

TROUPE_OPS(reshape) {
  r.add({.name = "Reshape",
         .in = {"x", "shape: Tshape"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"Tshape: type {i32 i64} = i64"},
         .shape = reshape_shape,
         .value = reshape_ints,
         .grad = reshape_grad,
         .host = {"shape"},
         .cheap = true,
         .doc = "The elements of x, in the same order, in another shape. One dimension may be -1: "
                "it follows from the number of elements."})
      .cpu(kernel<reshape>)
      .cuda(kernel<reshape>, kPlainTypes);
  r.add({.name = "ExpandDims",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axis: int"},
         .shape = expand_dims_shape,
         .value = reshape_ints,
         .grad = reshape_back,
         .cheap = true,
         .doc = "x with a new dimension of size 1 at position `axis` of the result; a negative "
                "axis counts from the end."})
      .cpu(make_kernel<ExpandDims>)
      .cuda(make_kernel<ExpandDims>, kPlainTypes);
  r.add({.name = "Squeeze",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"axes: list(int) = []"},
         .shape = squeeze_shape,
         .value = reshape_ints,
         .grad = reshape_back,
         .cheap = true,
         .doc = "x without the dimensions `axes`, whose size must be 1; if the list is empty, "
                "without all dimensions of size 1."})
      .cpu(make_kernel<Squeeze>)
      .cuda(make_kernel<Squeeze>, kPlainTypes);
}

TROUPE_OPS(identity) {
  r.add(identity("Identity", identity_grad, "y = x."))
      .cpu(kernel<pass>)
      .cuda(kernel<pass>, kPlainTypes);
  r.add(identity("StopGradient", nullptr, "y = x; gradients end here."))
      .cpu(kernel<pass>)
      .cuda(kernel<pass>, kPlainTypes);
  r.add({.name = "NoOp",
         .shape = no_outputs,
         .no_gradient = "no outputs",
         .cheap = true,
         .doc = "Does nothing; it takes and gives control edges."})
      .cpu(kernel<nothing>)
      .cuda(kernel<nothing>);
}
