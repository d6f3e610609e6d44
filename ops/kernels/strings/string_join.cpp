// StringJoin: texts side by side, one after the other.
#include <fmt/core.h>

#include "ops/kernels/support/args.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

// All have one shape, but for scalars, which stand beside every element.
Status string_join_shape(InferenceContext& c) {
  PartialShape all = PartialShape::scalar();
  bool some = false;
  for (int i = 0; i < c.inputs(); ++i) {
    const PartialShape& shape = c.shape(i);
    if (shape.known_rank() && shape.rank() == 0) continue;
    auto merged = some ? PartialShape::merge(all, shape) : Expected<PartialShape>(shape);
    if (!merged.ok())
      return invalid_argument(
          fmt::format("texts of {} and of {} cannot be joined", all.text(), shape.text()));
    // Of unknown rank it may be a scalar, and the others say what the result is.
    if (!shape.known_rank() && some) continue;
    all = std::move(merged).value();
    some = true;
  }
  c.set(0, all);
  return ok_status();
}

struct StringJoin final : Kernel {
  explicit StringJoin(const KernelSpec& s) : separator(s.string_attr("separator")) {}
  Status compute(KernelContext& ctx) override {
    Shape shape;
    for (int i = 0; i < ctx.inputs(); ++i) {
      const Shape& one = ctx.input(i).shape();
      if (one.rank() == 0 || one == shape) continue;
      if (shape.rank() != 0)
        return invalid_argument(
            fmt::format("texts of {} and of {} cannot be joined", shape.text(), one.text()));
      shape = one;
    }
    TROUPE_TRY(Tensor y, ctx.allocate(DType::string, shape));
    std::string* out = y.mutable_data<std::string>();
    for (std::int64_t e = 0; e < y.elements(); ++e)
      for (int i = 0; i < ctx.inputs(); ++i) {
        if (i > 0) out[e] += separator;
        const Tensor& x = ctx.input(i);
        out[e] += x.data<std::string>()[x.rank() == 0 ? 0 : e];
      }
    ctx.set_output(0, std::move(y));
    return ok_status();
  }
  std::string separator;
};

}  // namespace

TROUPE_OPS(string_join) {
  r.add({.name = "StringJoin",
         .in = {"values: T..."},
         .out = {"y"},
         .types = "string",
         .attrs = {"separator: string = "},
         .shape = string_join_shape,
         .no_gradient = "text",
         .doc = "The values joined elementwise, with `separator` between them. Scalars are joined "
                "to every element of the others, which all have the same shape."})
      .cpu(make_kernel<StringJoin>);
}
