// Checks of functions from outside, which are not trusted.
#pragma once

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// Checks what calls rely on, before the body: arguments are distinct nodes without inputs, and
// there are as many result types and shapes as results. invalid_argument names the fault.
Status check_signature(const FunctionDef& f, const OpRegistry& ops);
// Checks the nodes of a body, after they were checked as a graph: only arguments are handles, there
// are no placeholders, and the results match the signature. invalid_argument names a node.
Status check_body(const FunctionDef& f, const OpRegistry& ops);

}  // namespace troupe
