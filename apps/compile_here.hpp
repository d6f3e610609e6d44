// Compiling without a session: what a master does, for looking at the result.
#pragma once

#include <string>
#include <vector>

#include "graph/compile.hpp"
#include "ops/graph_api.hpp"

namespace troupe {

// Compiles `request` of `graph` for devices of these full names ("/job:worker/task:0/cpu:0"), with
// the ops and kernels of this build, folding constants. invalid_argument for a name that is not
// full.
Expected<CompiledGraph> compile_here(const Graph& graph, const CompileRequest& request,
                                     const std::vector<std::string>& devices,
                                     const StageObserver& observer = {});

}  // namespace troupe
