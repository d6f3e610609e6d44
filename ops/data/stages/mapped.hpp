// The stage that applies a function to each example: one of the graph, or a built-in one.
#pragma once

#include <cstdint>

#include "ops/data/example_function.hpp"
#include "ops/data/stage.hpp"

namespace troupe {

inline constexpr std::int64_t kMostParallel = 256;

// `draws`: the key of the function's random numbers in this stage. Computes up to `parallel`
// examples at once, in threads of the stage; order and values are the same as with one.
StagePtr mapped_stage(StagePtr input, ExampleFunctionPtr function, std::uint64_t draws,
                      Signature results, std::int64_t parallel);

}  // namespace troupe
