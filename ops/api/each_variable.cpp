#include "ops/api/each_variable.hpp"

#include <fmt/format.h>

#include "ops/api/node.hpp"

namespace troupe {

Op each_variable(std::string_view what, const std::vector<Variable>& to,
                 const std::vector<Variable>& from, const std::vector<Op>& after,
                 FunctionRef<Op(const Variable&, const Output&)> write, const Site& site) {
  if (to.size() != from.size() || to.empty())
    throw Error(invalid_argument(
                    fmt::format("{}: {} variables from {} others", what, to.size(), from.size()))
                    .at(site));
  std::vector<Op> writes;
  for (std::size_t i = 0; i < to.size(); ++i) {
    check_given(fmt::format("{}: variable {}", what, i), to[i].handle(), site);
    check_given(fmt::format("{}: other variable {}", what, i), from[i].handle(), site);
    writes.push_back(write(to[i], after.empty() ? from[i].value() : read(from[i], after, site)));
  }
  return group(to[0].handle().graph(), std::move(writes), what, site);
}

}  // namespace troupe
