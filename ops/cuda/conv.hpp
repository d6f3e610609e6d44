// Convolutions of GPUs.
#pragma once

#include <memory>

#include "ops/op.hpp"

namespace troupe::cuda {

// Conv2D, Conv2DBackpropInput, Conv2DBackpropFilter and _Conv2DBias, by the op's name.
Expected<std::unique_ptr<Kernel>> conv2d(const KernelSpec& spec);

}  // namespace troupe::cuda
