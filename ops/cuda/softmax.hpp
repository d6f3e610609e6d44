// Functions of rows on GPUs: softmax and the losses of it.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// Softmax, LogSoftmax and their gradients, by the op's name.
Expected<std::unique_ptr<Kernel>> softmax(const KernelSpec& spec);
// SoftmaxCrossEntropyWithLogits.
Expected<std::unique_ptr<Kernel>> cross_entropy(const KernelSpec& spec);
// SparseSoftmaxCrossEntropyWithLogits, whose labels are in host memory, where they are checked.
Expected<std::unique_ptr<Kernel>> sparse_cross_entropy(const KernelSpec& spec);

}  // namespace troupe::cuda
