// Rules that update variables on GPUs. Operands are named by input, as in ops/kernels/state/.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// var = var - lr * grad; inputs var, lr, grad.
Expected<std::unique_ptr<Kernel>> descend(const KernelSpec& spec);
// Inputs var, accum, lr, grad, momentum; attribute nesterov.
Expected<std::unique_ptr<Kernel>> momentum(const KernelSpec& spec);
// Inputs var, accum, lr, initial, epsilon, grad.
Expected<std::unique_ptr<Kernel>> adagrad(const KernelSpec& spec);
// Inputs var, lr, l1, l2, grad.
Expected<std::unique_ptr<Kernel>> proximal(const KernelSpec& spec);
// Inputs var, accum, lr, initial, l1, l2, grad.
Expected<std::unique_ptr<Kernel>> proximal_adagrad(const KernelSpec& spec);
// Inputs var, square, moved, lr, rho, epsilon, grad.
Expected<std::unique_ptr<Kernel>> adadelta(const KernelSpec& spec);
// Inputs var, square, velocity, lr, rho, momentum, epsilon, grad.
Expected<std::unique_ptr<Kernel>> rmsprop(const KernelSpec& spec);
// The same with mean before square.
Expected<std::unique_ptr<Kernel>> centered_rmsprop(const KernelSpec& spec);
// Inputs var, accum, linear, lr, initial, l1, l2, grad.
Expected<std::unique_ptr<Kernel>> ftrl(const KernelSpec& spec);
// Inputs var, rate, value.
Expected<std::unique_ptr<Kernel>> moving_average(const KernelSpec& spec);
// Inputs var, m, v, step, lr, beta1, beta2, epsilon, grad, and the decay of ApplyAdamW.
Expected<std::unique_ptr<Kernel>> adam(const KernelSpec& spec);

}  // namespace troupe::cuda
