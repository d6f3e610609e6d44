// Checks of calls against the functions that they name.
#pragma once

#include <string_view>
#include <vector>

#include "core/function_ref.hpp"
#include "core/status.hpp"
#include "graph/graph.hpp"
#include "graph/op_registry.hpp"
#include "graph/value_type.hpp"

namespace troupe {

// The function of that name; nullptr if there is none.
using FindFunction = FunctionRef<const FunctionDef*(std::string_view)>;

// Checks a node of role `call` beyond its op's definition: its functions exist, take `arguments`
// and agree in their results. Sets the attributes `Tout` and `shapes` if they are missing.
// not_found or invalid_argument names the function and its line; `call` may be partly changed.
Status check_call(NodeDef& call, const std::vector<ValueType>& arguments, FindFunction find);

// Whether running `call` can write the resource behind input `input`, a handle: in its functions,
// or in functions that these call.
bool writes_input(const GraphDef& graph, const OpRegistry& ops, const NodeDef& call,
                  std::size_t input);

}  // namespace troupe
