// Names that an op has elsewhere.
#pragma once

#include <span>
#include <string_view>

namespace troupe::ops::detail {

struct OtherNames {
  std::string_view op;
  std::string_view tensorflow;  // empty: it has the same name there, or there is no such op
  std::string_view paper;       // in Table 1; empty: the same, or it is not there
};
std::span<const OtherNames> other_names();

}  // namespace troupe::ops::detail
