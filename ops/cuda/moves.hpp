// Tensors of GPUs that are made of others by moving elements.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// y = x, without a copy.
Expected<std::unique_ptr<Kernel>> pass(const KernelSpec& spec);

}  // namespace troupe::cuda
