// Hashes of nodes by all that they say, whole contents of constants included.
#pragma once

#include <cstdint>

#include "graph/graph.hpp"

namespace troupe {

// Of what decides what a node computes: not its name, replica or site. `swap`: two inputs in the
// other order.
std::uint64_t hash_of_computation(const NodeDef& node, bool swap = false);

// Whether a hash covers where nodes are to run: their devices, and what they are colocated with.
enum class Placing : std::uint8_t { hashed, ignored };

// A running hash of a list of nodes: that of the nodes before and one more. Not for telling apart
// what somebody made to look alike.
std::uint64_t hash_nodes(std::uint64_t before, const NodeDef& node,
                         Placing placing = Placing::hashed);
// The same for a function, by all that it says and its body does.
std::uint64_t hash_functions(std::uint64_t before, const FunctionDef& function,
                             Placing placing = Placing::hashed);

}  // namespace troupe
