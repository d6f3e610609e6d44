#include "graph/control/lowering/detail/values.hpp"

#include "graph/control/state/state_ops.hpp"

namespace troupe::detail {

std::string called(const FunctionDef& f) {
  return "function " + quoted(std::string(original_function(f.name))) + " (" + f.site.text() + ")";
}

}  // namespace troupe::detail
