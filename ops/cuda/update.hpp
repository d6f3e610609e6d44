// Rules that update variables on GPUs. Operands are named by input, as in ops/kernels/state/.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// var = var - lr * grad; inputs var, lr, grad.
Expected<std::unique_ptr<Kernel>> descend(const KernelSpec& spec);
// Inputs var, accum, lr, grad, momentum; attribute nesterov.
Expected<std::unique_ptr<Kernel>> momentum(const KernelSpec& spec);
// Inputs var, m, v, step, lr, beta1, beta2, epsilon, grad, and the decay of ApplyAdamW.
Expected<std::unique_ptr<Kernel>> adam(const KernelSpec& spec);

}  // namespace troupe::cuda
