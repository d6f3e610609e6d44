#include "ops/api/segments.hpp"

#include <string>

#include "core/function_ref.hpp"
#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"
#include "ops/detail/wide.hpp"

namespace troupe {

namespace {

// `sum` adds rows up by segment.
Output over_root(const std::string& what, const Output& data, const Output& ids,
                 FunctionRef<Output(const Output&)> sum, const Site& site) {
  check_given(what + ": `data`", data, site);
  check_given(what + ": `segment_ids`", ids, site);
  const Output wide = detail::wide(data, site);
  const Output ones = ones_like(cast(ids, wide.dtype(), site), site);
  const Output one = number_beside(wide, 1, "", site).beside(wide, site);
  const Output rows = maximum(sum(ones), one, site);
  return detail::narrow(scale_rows(sum(wide), rsqrt(rows, site), site), data.dtype(), site);
}

}  // namespace

Output detail::segments_of(const Output& data, std::int64_t number, const Site& site) {
  check_given("a segment's `data`", data, site);
  return constant(data.graph(), number, site);
}

Output segment_sqrt_n(Output data, Output segment_ids, Site site) {
  return over_root(
      "segment_sqrt_n", data, segment_ids,
      [&](const Output& x) { return segment_sum(x, segment_ids, site); }, site);
}

Output unsorted_segment_sqrt_n(Output data, Output segment_ids, Output num_segments, Site site) {
  return over_root(
      "unsorted_segment_sqrt_n", data, segment_ids,
      [&](const Output& x) { return unsorted_segment_sum(x, segment_ids, num_segments, site); },
      site);
}

}  // namespace troupe
