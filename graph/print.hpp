// Graphs for people: as text, and as DOT for Graphviz.
#pragma once

#include <string>

#include "graph/graph.hpp"

namespace troupe {

// One node per line, in order:
//   h/MatMul = MatMul(x, h/w, ^init) {transpose_a: false} : f32[32,128] on /cpu:0 # mnist.cpp:15
// Any value prints, of graphs that no check has seen too; an edge to nowhere shows as "?7:0".
std::string to_text(const GraphDef& graph);

// A digraph: one cluster per device constraint, edges labelled with dtype and shape, control edges
// dashed, back edges of loops bold. Names, ops and attributes are escaped.
std::string to_dot(const GraphDef& graph);

}  // namespace troupe
