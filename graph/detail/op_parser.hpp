// From the text of a definition to its taken-apart form.
#pragma once

#include "core/status.hpp"
#include "graph/op_def.hpp"

namespace troupe::detail {

// invalid_argument, starting with the op's name, where the definition contradicts itself or does
// not follow the grammar of op_def.hpp.
Expected<OpInfo> parse_op(OpDef def);

}  // namespace troupe::detail
