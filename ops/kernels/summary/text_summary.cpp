// TextSummary: text.
#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

struct TextSummary final : Kernel {
  explicit TextSummary(const KernelSpec& s) : tag(s.string_attr("tag")) {}
  Status compute(KernelContext& ctx) override {
    detail::SummaryBytes summary;
    summary.add_text(tag, ctx.input(0));
    return set_summary(ctx, std::move(summary));
  }
  std::string tag;
};

}  // namespace

TROUPE_OPS(text_summary) {
  r.add({.name = "TextSummary",
         .in = {"x: string"},
         .out = {"summary: string"},
         .attrs = {"tag: string"},
         .shape = tagged_summary_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "A serialized Summary protocol buffer with the strings of x, of any shape, which "
                "TensorBoard shows as Markdown: a vector as a column, a matrix as a table. Invalid "
                "UTF-8 becomes U+FFFD."})
      .cpu(make_kernel<TextSummary>);
}
