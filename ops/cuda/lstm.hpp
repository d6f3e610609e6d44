// LSTMs on GPUs, without a library: products of matrices, and a kernel for the units of a step.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

Expected<std::unique_ptr<Kernel>> lstm_cell(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> lstm_cell_grad(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> lstm_sequence(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> lstm_sequence_grad(const KernelSpec& spec);

}  // namespace troupe::cuda
