// What the ops that make summaries share.
#pragma once

#include <string>

#include "ops/detail/summary_bytes.hpp"
#include "ops/op.hpp"

namespace troupe {

inline constexpr const char* kNoSummaryGradient = "a summary is text that tells of its inputs";

// The bytes as output 0, a scalar.
inline Status set_summary(KernelContext& ctx, detail::SummaryBytes summary) {
  TROUPE_TRY(std::string bytes, std::move(summary).take());
  TROUPE_TRY(Tensor out, ctx.allocate_host(DType::string, Shape{}));
  *out.mutable_data<std::string>() = std::move(bytes);
  ctx.set_output(0, std::move(out));
  return ok_status();
}

// For the shape functions: one summary, of a node with such attributes.
inline Status tagged_summary_shape(InferenceContext& c) {
  TROUPE_TRY(detail::check_tag(c.string_attr("tag")));
  return scalar_shape(c);
}
inline Status check_max_outputs(InferenceContext& c) {
  if (c.int_attr("max_outputs") >= 1) return ok_status();
  return invalid_argument("max_outputs is at least 1, not " +
                          std::to_string(c.int_attr("max_outputs")));
}

}  // namespace troupe
