// Devices for all variables of a graph, independent of requests.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "graph/compile.hpp"

namespace troupe {

// The bytes of a handle's variable; 0 if its shape is unknown before a run.
std::uint64_t variable_bytes(const NodeDef& variable);

// Devices of variables that `target.fixed` does not contain, by resource_key(). They depend on the
// whole graph and on `target`, not on what is compiled first.
//   - With `spread` each variable has one: they are spread over the tasks by bytes, greedily in the
//     order of their first handles. Variables in `target.fixed` count.
//   - Without it, only variables have one for which a node requests it, even a node that only other
//     requests need. Placement decides about the others.
//   - Variables that one node takes (an optimizer's parameter and slots) or that are colocated
//     share a device, also if that node is in a function.
//   - The constraints of the nodes of such a group hold. A group with contradicting nodes, or
//     without a possible device, is left out: placement reports the error.
// Empty if there is one device. REQUIRES: `graph` was returned by import_graph.
std::map<std::string, DeviceName> variable_homes(const GraphDef& graph, const Target& target,
                                                 bool spread);

// Whether the node may affect the homes.
bool bears_on_homes(const GraphDef& graph, NodeId id, const OpRegistry& ops);

}  // namespace troupe
