// Opens the pipeline of a node that describes a dataset.
#pragma once

#include "graph/graph.hpp"
#include "ops/data/data_file.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/pipeline.hpp"

namespace troupe {

// The pipeline of a Dataset or DataPipeline node. If a file is missing, one with ".gz" appended is
// tried. `functions` are those that the node names, in that order. Errors name the file.
// invalid_argument if the files have other elements than the node declares, or none.
Expected<Pipeline> open_dataset(const NodeDef& def, OpenDataFile open,
                                ExampleFunctions functions = {});

// The names of the functions of the graph that the stages of such a node call.
std::vector<std::string> functions_of_dataset(const NodeDef& def);

}  // namespace troupe
