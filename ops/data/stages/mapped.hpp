// The stage that calls a function of each example: of the graph, or one of ours.
#pragma once

#include <cstdint>

#include "ops/data/example_function.hpp"
#include "ops/data/stage.hpp"

namespace troupe {

inline constexpr std::int64_t kMostParallel = 256;

// `draws` keys what the function draws in this stage. Up to `parallel` examples are computed at
// once, in threads of the stage; order and values are those of one after the other.
StagePtr mapped_stage(StagePtr input, ExampleFunctionPtr function, std::uint64_t draws,
                      Signature results, std::int64_t parallel);

}  // namespace troupe
