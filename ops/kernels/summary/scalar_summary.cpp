// ScalarSummary: numbers for curves (paper, section 9.1).
#include <fmt/core.h>

#include <limits>
#include <set>
#include <string_view>

#include "ops/kernels/summary/summary.hpp"
#include "ops/kernels/support/types.hpp"

using namespace troupe;

namespace {

const std::vector<std::string>& tags_of(const AttrMap& attrs) {
  return *attrs.find("tags")->second.get<std::vector<std::string>>();
}

// The largest number for more elements than there can be.
std::int64_t counted(const PartialShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t dim : shape.dims())
    if (__builtin_mul_overflow(count, dim, &count)) return std::numeric_limits<std::int64_t>::max();
  return count;
}

Status check_tag_count(std::size_t tags, const std::string& shape, std::int64_t elements) {
  if (std::int64_t(tags) == elements) return ok_status();
  return invalid_argument(
      fmt::format("tags has {} and x is {}: one tag per element is needed", tags, shape));
}

Status scalar_summary_shape(InferenceContext& c) {
  const auto& tags = tags_of(c.attrs());
  std::set<std::string_view> known;
  for (const std::string& tag : tags) {
    TROUPE_TRY(detail::check_tag(tag));
    if (!known.insert(tag).second) return invalid_argument("two tags are '" + tag + "'");
  }
  if (c.shape(0).fully_known())
    TROUPE_TRY(check_tag_count(tags.size(), c.shape(0).text(), counted(c.shape(0))));
  return scalar_shape(c);
}

template <class T>
struct ScalarSummary final : Kernel {
  explicit ScalarSummary(const KernelSpec& s) : tags(tags_of(s.node.attrs)) {}
  Status compute(KernelContext& ctx) override {
    const Tensor& x = ctx.input(0);
    TROUPE_TRY(check_tag_count(tags.size(), x.shape().text(), x.elements()));
    detail::SummaryBytes summary;
    const T* values = x.data<T>();
    for (std::size_t i = 0; i < tags.size(); ++i)
      summary.add_scalar(tags[i], float(Compute<T>(values[i])));
    return set_summary(ctx, std::move(summary));
  }
  std::vector<std::string> tags;
};

}  // namespace

TROUPE_OPS(scalar_summary) {
  r.add({.name = "ScalarSummary",
         .in = {"x"},
         .out = {"summary: string"},
         .types = kNumbers,
         .attrs = {"tags: list(string)"},
         .shape = scalar_summary_shape,
         .no_gradient = kNoSummaryGradient,
         .doc = "A serialized Summary protocol buffer with the elements of x as f32 numbers, which "
                "TensorBoard draws as curves. `tags` are their names, one for each element, all "
                "different. NaN and infinities are kept."})
      .cpu(typed_kernel<ScalarSummary, Numbers>);
}
