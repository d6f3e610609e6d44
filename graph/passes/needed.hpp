#pragma once

#include "graph/graph_index.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

// What feed_and_fetch() and then prune() leave of the graph, with the notes and errors of both but
// for a placeholder that is not fed, which is left to prune(). Costs what is needed, not what there
// is: the graph is neither copied nor gone through. Functions that nothing needed calls are left
// out. REQUIRES: the index knows all of the graph.
Expected<StepGraph> feed_and_take(const GraphDef& graph, const GraphIndex& index,
                                  const CompileRequest& request, const OpRegistry& ops);

}  // namespace troupe
