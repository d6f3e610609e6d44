// Products of matrices on GPUs.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// MatMul and BatchMatMul, of attributes transpose_a and transpose_b.
Expected<std::unique_ptr<Kernel>> matmul(const KernelSpec& spec);

}  // namespace troupe::cuda
