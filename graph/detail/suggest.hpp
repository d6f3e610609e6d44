// How errors show names: cut to a readable length, with near ones beside them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "troupe/core/name.hpp"

namespace troupe::detail {

inline std::string quoted(std::string_view name) {
  constexpr std::size_t kMost = 80;
  return "'" + std::string(name.substr(0, kMost)) + (name.size() > kMost ? "...'" : "'");
}

// "; did you mean MatMul, MatMulGrad?", or nothing.
inline std::string suggest(std::string_view wanted, const std::vector<std::string>& known) {
  std::string out;
  for (const std::string& name : near_names(wanted, known))
    out += (out.empty() ? "; did you mean " : ", ") + name;
  return out.empty() ? out : out + "?";
}

}  // namespace troupe::detail
