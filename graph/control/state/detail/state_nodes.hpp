// Nodes for state that goes through loops as a value.
#pragma once

#include <string>
#include <vector>

#include "graph/control/functions/node_copies.hpp"

namespace troupe::detail {

NodeDef scalar_constant(std::string name, Tensor value, const Site& site);
// A value that nobody looks at.
Tensor none_of(DType dtype);
// The dtype of the variable behind a handle; of a dataset, that of how many elements were taken.
DType dtype_of_variable(const NodeDef& handle);
// Makes a call take and give state: `first` behind the variables of a loop, which are as many, or
// behind all arguments of another call, and behind the results; `last` behind the arguments. These
// are ports of `copies`.
void add_state_to(NodeDef& call, std::size_t variables, const std::vector<Port>& first,
                  const std::vector<Port>& last, const NodeCopies& copies);

}  // namespace troupe::detail
