// Pools of GPUs.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// MaxPool, MaxPoolGrad, MaxPoolPick, AvgPool and AvgPoolGrad, by the op's name.
Expected<std::unique_ptr<Kernel>> pool(const KernelSpec& spec);

}  // namespace troupe::cuda
