// Attention on GPUs: by cuDNN, or in its parts.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// DotProductAttention and MaskedDotProductAttention, by the op's name, and their gradients.
Expected<std::unique_ptr<Kernel>> attention(const KernelSpec& spec);
Expected<std::unique_ptr<Kernel>> attention_grad(const KernelSpec& spec);

}  // namespace troupe::cuda
