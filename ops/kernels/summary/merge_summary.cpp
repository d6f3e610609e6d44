// MergeSummary: several summaries as one (paper, section 9.1).
#include <fmt/core.h>

#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

Status merge_summary(KernelContext& ctx) {
  detail::SummaryBytes summary;
  for (int i = 0; i < ctx.inputs(); ++i) {
    const Tensor& x = ctx.input(i);
    for (const std::string& one : x.span<std::string>())
      if (Status added = summary.add_all(one); !added.ok())
        return added.in(fmt::format("in summaries[{}]", i));
  }
  return set_summary(ctx, std::move(summary));
}

}  // namespace

TROUPE_OPS(merge_summary) {
  r.add({.name = "MergeSummary",
         .in = {"summaries: T..."},
         .out = {"summary: string"},
         .types = "string",
         .shape = scalar_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "One serialized Summary protocol buffer with all values of the inputs, which may "
                "have any shape. Fails the run if an element is not a valid Summary, or if two "
                "values have the same tag."})
      .cpu(kernel<merge_summary>);
}
