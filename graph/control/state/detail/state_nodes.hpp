// Nodes for state that loops carry as values.
#pragma once

#include <string>
#include <vector>

#include "graph/control/functions/node_copies.hpp"

namespace troupe::detail {

NodeDef scalar_constant(std::string name, Tensor value, const Site& site);
// A value that is never used.
Tensor none_of(DType dtype);
// The dtype of a handle's variable; for a dataset that of the number of elements taken.
DType dtype_of_variable(const NodeDef& handle);
// Adds state to a call: `first` after the loop's `variables`, or after all arguments of another
// call, and after the results; `last` after the arguments. These are ports of `copies`.
void add_state_to(NodeDef& call, std::size_t variables, const std::vector<Port>& first,
                  const std::vector<Port>& last, const NodeCopies& copies);

}  // namespace troupe::detail
