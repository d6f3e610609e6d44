#pragma once

#include <string>
#include <string_view>

#include "core/tensor.hpp"

namespace troupe {

// The encoding of tensors in a node, for the source `tensors`.
std::string tensor_bytes(const Tensor& tensor);
// Decodes such bytes; invalid_argument if their number does not match the type.
Expected<Tensor> tensor_of(DType dtype, const Shape& shape, std::string_view bytes);

}  // namespace troupe
