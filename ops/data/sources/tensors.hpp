#pragma once

#include <string>

#include "core/tensor.hpp"

namespace troupe {

// A tensor's elements as the source of tensors reads them back.
std::string tensor_bytes(const Tensor& tensor);

}  // namespace troupe
