// Random layered graphs: the shape that executors are measured on.
#pragma once

#include <cstdint>

#include "graph/plan.hpp"

namespace troupe {

// `depth` times a hub that joins a random part of the nodes in hand, followed by up to `width`
// nodes that follow it: about width * depth / 2 + depth nodes, wide or deep as asked, with hubs of
// large fan-in and fan-out. `data`: all edges carry tensors (a hub reads all it joins and has one
// output, the others read the hub); else all are control edges. A function of its arguments.
Plan layered_graph(std::uint32_t width, std::uint32_t depth, bool data, std::uint64_t seed = 1729);

// `nodes` nodes, one after the other.
Plan chain_graph(std::uint32_t nodes, bool data);

}  // namespace troupe
