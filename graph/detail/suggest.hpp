// What an error says beside a name that is not known.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/name.hpp"

namespace troupe::detail {

// "; did you mean MatMul, MatMulGrad?", or nothing.
inline std::string suggest(std::string_view wanted, const std::vector<std::string>& known) {
  std::string out;
  for (const std::string& name : near_names(wanted, known))
    out += (out.empty() ? "; did you mean " : ", ") + name;
  return out.empty() ? out : out + "?";
}

}  // namespace troupe::detail
