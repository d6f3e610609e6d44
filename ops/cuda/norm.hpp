// Layer norm, group norm and batch norm on GPUs.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

Expected<std::unique_ptr<Kernel>> layer_norm(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> layer_norm_grad(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> group_norm(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> group_norm_grad(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> batch_norm(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> batch_norm_grad(const KernelSpec& spec);

}  // namespace troupe::cuda
