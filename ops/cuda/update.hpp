// Rules that update variables on GPUs. Operands are named by input, as in ops/kernels/state/.
#pragma once

#include <memory>
#include <vector>

#include "ops/op.hpp"

namespace troupe::cuda {

// The order of rows, those of one place together, and the places by row (ops/cuda/rows.hpp).
struct PlacedRows {
  std::vector<std::int64_t> order, places;
};
// Checks and sorts inputs "indices" and "rows" of a rule.
using PlaceRows = Expected<PlacedRows> (*)(const Tensor& variable, const Tensor& indices,
                                           const Tensor& rows);
// ApplySparse..., by the op's name: rules for some rows, whose indices are in host memory.
Expected<std::unique_ptr<Kernel>> update_rows(const KernelSpec& spec, PlaceRows place);
// ScatterAdd, ScatterSub and ScatterUpdate, by the op's name.
Expected<std::unique_ptr<Kernel>> scatter_rows(const KernelSpec& spec, PlaceRows place);

// Inputs var, m, v, step, lr, beta1, beta2, epsilon, grad, decay.
Expected<std::unique_ptr<Kernel>> lamb(const KernelSpec& spec);
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
