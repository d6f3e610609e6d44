// Sums of tensors on GPUs.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// AddN: from left to right, f16 and bf16 in f32 and rounded once.
Expected<std::unique_ptr<Kernel>> add_n(const KernelSpec& spec);

}  // namespace troupe::cuda
