// The actor of one input pipeline.
#pragma once

#include <caf/fwd.hpp>

#include "actors/interfaces.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/pipeline.hpp"

namespace troupe {

// The pipeline that a dataset's node describes, over files of this machine (open_dataset).
Expected<Pipeline> open_local_dataset(const NodeDef& dataset, ExampleFunctions functions = {});

// Serves elements by position, and makes the next `prefetch` elements of each replica while it is
// idle. Opens its files on the first request; an error is the answer, and the next request tries
// again. Reading and decoding take long: it has its own thread, except in a simulation.
DatasetActor spawn_dataset(caf::actor_system& system, NodeDef dataset,
                           std::vector<ExampleFunctionPtr> functions, bool own_thread);

}  // namespace troupe
