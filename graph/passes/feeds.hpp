// From names to ports: fed ports become feed nodes, fetches and targets are looked up.
#pragma once

#include "graph/graph_index.hpp"
#include "graph/passes/pass.hpp"

namespace troupe {

// The first stage. The step has the part of the graph that the request needs, as feed_and_fetch()
// and then prune() would leave it, with the notes and errors of both but for a placeholder that is
// not fed, which is left to prune(). Costs what is needed, not what there is: the graph is neither
// copied nor gone through. Functions that nothing needed calls are left out. REQUIRES: the index
// knows all of the graph.
Expected<StepGraph> feed_and_take(const GraphDef& graph, const GraphIndex& index,
                                  const CompileRequest& request, const OpRegistry& ops);
// The same with the whole graph, for who wants to see that.
Expected<StepGraph> feed_and_fetch(const GraphDef& graph, const GraphIndex& index,
                                   const CompileRequest& request, const OpRegistry& ops);

}  // namespace troupe
