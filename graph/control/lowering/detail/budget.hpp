// Limits the size of a step's lowered functions.
#pragma once

#include <string>
#include <vector>

#include "graph/control/lowering/detail/function_table.hpp"
#include "graph/control/lowering/detail/values.hpp"

namespace troupe::detail {

// Limits the nodes, edges and names that lowering makes of functions: functions that each call the
// next one twice would grow exponentially. The limit is proportional to the graph. Lives for one
// pass over a step. REQUIRES: check_size() comes before spend().
class Budget {
 public:
  Budget(const FunctionTable& functions, const OpRegistry& ops);

  // Sets the limit for a step of these nodes, before lowering. If copies of functions would exceed
  // it, large functions are called instead, like recursive ones. resource_exhausted, naming the
  // call, if the rest is still too large.
  Status check_size(const std::vector<NodeDef>& nodes);
  // Whether a function is called instead of inlined because copies of it would be too large.
  bool is_called(const FunctionDef& f) const { return called_[functions_.index(f)]; }

  // Counts `more` nodes and edges. resource_exhausted, naming `what`, once there are too many.
  Status spend(std::size_t more, const std::string& what);
  // Counts a copy of the function at that place.
  Status spend_on(const FunctionDef& f, const Place& place);

 private:
  Status too_much(const std::string& what) const;

  const FunctionTable& functions_;
  const OpRegistry& ops_;
  std::vector<bool> called_;              // by function
  std::size_t most_work_ = 0, work_ = 0;  // nodes, edges and every 64 bytes of names
};

}  // namespace troupe::detail
