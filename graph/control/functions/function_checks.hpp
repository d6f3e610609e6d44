// What a function from outside must be. Nothing of it is believed.
#pragma once

#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"

namespace troupe {

// What calls rely on, before the body was looked at: arguments are nodes of their own without
// inputs, and types and shapes of results are as many as those. invalid_argument says what is not.
Status check_signature(const FunctionDef& f, const OpRegistry& ops);
// What the nodes of a body must be, once they are checked as a graph: only arguments are handles,
// nothing is to be fed, and the results are what the signature says. invalid_argument names a node.
Status check_body(const FunctionDef& f, const OpRegistry& ops);

}  // namespace troupe
