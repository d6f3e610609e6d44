// Resolves the names of a request: fed ports become feed nodes, fetches and targets are looked up.
#pragma once

#include "graph/graph_index.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

// The first stage. The step has the part of the graph that the request needs, like feed_and_fetch()
// followed by prune(), with the notes and errors of both; only unfed placeholders are left to
// prune(). Takes time for the needed part only. Functions that no needed node calls are left out.
// REQUIRES: the index covers the whole graph.
Expected<StepGraph> feed_and_take(const GraphDef& graph, const GraphIndex& index,
                                  const CompileRequest& request, const OpRegistry& ops);
// The same with the whole graph, for displaying it.
Expected<StepGraph> feed_and_fetch(const GraphDef& graph, const GraphIndex& index,
                                   const CompileRequest& request, const OpRegistry& ops);

}  // namespace troupe
