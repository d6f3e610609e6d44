// Ops that watch: Assert, Print, CheckNumerics, EnsureShape, EnsureSameShape.
#include <fmt/core.h>

#include <cstdio>

#include "core/held_signal.hpp"
#include "graph/control/functions/ops.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status assert_shape(InferenceContext& c) { return c.want_rank(0, 0); }
struct Assert final : Kernel {
  explicit Assert(const KernelSpec& s) : message(s.string_attr("message")) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& condition = ctx.input(0);
    if (condition.elements() != 1)
      return invalid_argument("condition must be a scalar, not " + condition.shape().text());
    if (*condition.data<bool>()) return ok_status();
    return failed_precondition("assertion failed: " + message);
  }
  std::string message;
};

struct Print final : Kernel {
  explicit Print(const KernelSpec& s)
      : message(s.string_attr("message")),
        limit(int(std::clamp<std::int64_t>(s.int_attr("limit"), 0, 1 << 20))) {}
  Status compute(KernelContext& ctx) override {
    const std::string line = message + ctx.input(0).text(limit) + "\n";
    const HeldSignal held(SIGXFSZ);
    std::fwrite(line.data(), 1, line.size(), stderr);  // one call: lines of two lanes do not mix
    ctx.set_output(0, ctx.input(0));
    return ok_status();
  }
  std::string message;
  int limit;
};
std::vector<Output> pass_gradient(GradContext& c) { return {c.dy[0]}; }

template <class T>
struct CheckNumerics final : Kernel {
  explicit CheckNumerics(const KernelSpec& s) : message(s.string_attr("message")) {}
  Status compute(KernelContext& ctx) override {
    const auto values = ctx.input(0).template span<T>();
    for (std::size_t i = 0; i < values.size(); ++i)
      if (!std::isfinite(Compute<T>(values[i])))
        return invalid_argument(fmt::format("{}: element {} of {} is {}", message, i,
                                            ctx.input(0).shape().text(), Compute<T>(values[i])));
    ctx.set_output(0, ctx.input(0));
    return ok_status();
  }
  std::string message;
};
std::vector<Output> check_gradient(GradContext& c) {
  return {
      c.g.add("CheckNumerics", {c.dy[0]}, {{"message", c.string_attr("message") + " (gradient)"}})};
}

Status ensured_shape(InferenceContext& c) {
  TROUPE_TRY(const PartialShape shape, PartialShape::merge(c.shape_attr("shape"), c.shape(0)));
  c.set(0, shape);
  return ok_status();
}
struct EnsureShape final : Kernel {
  explicit EnsureShape(const KernelSpec& s)
      : wanted(s.shape_attr("shape")),
        message(s.node.op == kEnsuredOp ? s.string_attr("message") + ": " : "") {}
  Status compute(KernelContext& ctx) override {
    const Shape& shape = ctx.input(0).shape();
    if (!PartialShape::merge(wanted, PartialShape(shape)).ok())
      return invalid_argument(message + "the shape is " + shape.text() + ", and should be " +
                              wanted.text());
    ctx.set_output(0, ctx.input(0));
    return ok_status();
  }
  PartialShape wanted;
  std::string message;
};

Status different_shapes(const std::string& x, const std::string& like) {
  return invalid_argument("x is " + x + " and like is " + like + "; their shapes must be equal");
}
Status same_shape_as(InferenceContext& c) {
  auto shape = PartialShape::merge(c.shape(0), c.shape(1));
  if (!shape.ok()) return different_shapes(c.shape(0).text(), c.shape(1).text());
  c.set(0, std::move(shape).value());
  return ok_status();
}
Status ensure_same_shape(KernelContext& ctx) {
  const Shape &x = ctx.input(0).shape(), &like = ctx.input(1).shape();
  if (x != like) return different_shapes(x.text(), like.text());
  ctx.set_output(0, ctx.input(0));
  return ok_status();
}
std::vector<Output> pass_first_gradient(GradContext& c) { return {c.dy[0], Output()}; }

}  // namespace

TROUPE_OPS(debug) {
  r.add({.name = "Assert",
         .in = {"condition: bool"},
         .attrs = {"message: string = \"\""},
         .shape = assert_shape,
         .no_gradient = "no outputs",
         .stateful = true,
         .doc = "Fails the run with `message` if the scalar condition is false. Nodes that rely on "
                "it need it as a control input."})
      .cpu(make_kernel<Assert>);
  r.add({.name = "Print",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"message: string = \"\"", "limit: int = 8"},
         .shape = same_shape,
         .grad = pass_gradient,
         .stateful = true,
         .doc = "y = x; writes the message and at most `limit` elements to stderr."})
      .cpu(make_kernel<Print>);
  r.add({.name = "CheckNumerics",
         .in = {"x"},
         .out = {"y"},
         .types = kFloats,
         .attrs = {"message: string = \"CheckNumerics\""},
         .shape = same_shape,
         .grad = check_gradient,
         .doc = "y = x; fails the run if x has an infinity or a NaN, and names the first one."})
      .cpu(typed_kernel<CheckNumerics, Floats>);
  r.add({.name = "EnsureShape",
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"shape: shape"},
         .shape = ensured_shape,
         .grad = pass_gradient,
         .cheap = true,
         .doc = "y = x; fails the run if x does not have the shape `shape`, in which dimensions "
                "may be unknown. Shape inference gives y this shape."})
      .cpu(make_kernel<EnsureShape>)
      .cuda(make_kernel<EnsureShape>, kPlainTypes);
  r.add({.name = "EnsureSameShape",
         .in = {"x", "like: Tlike"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {std::string("Tlike: type {") + kAllTypes + "}"},
         .shape = same_shape_as,
         .grad = pass_first_gradient,
         .cheap = true,
         .doc = "y = x; fails the run if the shapes of x and like differ, even if one could be "
                "broadcast to the other. Shape inference gives y the shape of like. No gradient "
                "flows to like."})
      .cpu(kernel<ensure_same_shape>)
      .cuda(kernel<ensure_same_shape>, kPlainTypes);
  r.add({.name = std::string(kEnsuredOp),
         .in = {"x"},
         .out = {"y"},
         .types = kAllTypes,
         .attrs = {"shape: shape", "message: string"},
         .shape = ensured_shape,
         .grad = pass_gradient,
         .cheap = true,
         .doc = "EnsureShape for a value of a function, added by lowering; `message` names it."})
      .cpu(make_kernel<EnsureShape>)
      .cuda(make_kernel<EnsureShape>, kPlainTypes);
}
