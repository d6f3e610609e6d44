// What closes a loop: an edge from NextIteration into Merge, the only edge that may point
// backwards.
#pragma once

#include "core/status.hpp"
#include "graph/op_registry.hpp"

namespace troupe::detail {

bool is_back_edge(const NodeDef& from, const NodeDef& to, const OpRegistry& ops);

// invalid_argument unless a value of this dtype and shape may be the next one of the loop variable
// that `merge` starts. The body was built on what entered: where less is known of the shape, each
// iteration checks it.
Status check_back_edge(const NodeDef& merge, DType dtype, const PartialShape& shape);

}  // namespace troupe::detail
