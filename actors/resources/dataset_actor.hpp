// The actor of one input pipeline.
#pragma once

#include <caf/fwd.hpp>

#include "actors/interfaces.hpp"
#include "ops/data/example_function.hpp"
#include "ops/data/pipeline.hpp"

namespace troupe {

// The pipeline that the Dataset node describes, over files of this machine (open_dataset).
Expected<Pipeline> open_local_dataset(const NodeDef& dataset, ExampleFunctions functions = {});

// Serves elements by position, and makes the next `prefetch` ones of each replica while nobody
// asks. Opens its files when it is first asked; an error there is the answer, and the next request
// tries again. Reading and decoding take long: on a thread of its own, but for a simulation on one
// thread.
DatasetActor spawn_dataset(caf::actor_system& system, NodeDef dataset,
                           std::vector<ExampleFunctionPtr> functions, bool own_thread);

}  // namespace troupe
