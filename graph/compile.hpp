// From a graph and a request to plans: the compile path, one pure function. Read this first.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "graph/plan.hpp"
#include "graph/request.hpp"

namespace troupe {

// The stages of compile() that work on a StepGraph, in order.
std::vector<std::string> stage_names();

// Called after each stage with its name and a printable graph; for `troupe graph` and dumps.
using StageObserver = std::function<void(std::string_view stage, const GraphDef&)>;

// check -> feeds and fetches -> prune -> raise -> state -> lower -> fold -> cse -> prune -> order
// of writes -> replicate -> place -> distribute -> partition -> plan; compile.cpp lists them.
// Errors name the node and the line that created it.
Expected<CompiledGraph> compile(const GraphDef& graph, const CompileRequest& request,
                                const Target& target, const StageObserver& observer = {});

}  // namespace troupe
