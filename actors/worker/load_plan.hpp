// Loads a plan with its kernels.
#pragma once

#include <memory>

#include "actors/burst/loaded_plan.hpp"
#include "ops/op.hpp"

namespace troupe {

// The plan with the kernels from `ops` for the device, which outlives it. Errors name the node.
Expected<std::shared_ptr<const LoadedPlan>> load_plan(Plan plan, Device& device,
                                                      const OpTable& ops);

}  // namespace troupe
