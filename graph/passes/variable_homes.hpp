// Devices for all variables of a graph, whatever a request uses of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "graph/compile.hpp"

namespace troupe {

// The bytes of a variable, by its handle; 0 if its shape is unknown before a run.
std::uint64_t variable_bytes(const NodeDef& variable);

// Devices of variables that `target.fixed` does not name, by resource_key(). They depend on the
// whole graph and on `target`, not on what is compiled first.
//   - With `spread` each variable has one: they are spread over the tasks by bytes, greedily in the
//     order of their first handles. What is in `target.fixed` counts.
//   - Without it only those have one for which a node asks: one that only other requests need
//     still says where a variable lives. Of the others placing a step decides.
//   - Variables that one node takes (an optimizer's parameter and slots) or that are colocated
//     share a device, also when that node is in a function.
//   - What the nodes of such a group ask for holds. A group whose nodes contradict each other, or
//     that no device can have, is left out: placing a step says what is wrong.
// Empty when there is one device. REQUIRES: `graph` is what import_graph returns.
std::map<std::string, DeviceName> variable_homes(const GraphDef& graph, const Target& target,
                                                 bool spread);

// Whether the homes may differ with and without that node of the graph.
bool bears_on_homes(const GraphDef& graph, NodeId id, const OpRegistry& ops);

}  // namespace troupe
