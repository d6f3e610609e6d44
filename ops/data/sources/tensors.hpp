#pragma once

#include <string>
#include <string_view>

#include "core/tensor.hpp"

namespace troupe {

// A tensor's elements as the source of tensors reads them back.
std::string tensor_bytes(const Tensor& tensor);
// The tensor of such bytes; invalid_argument unless there are as many as its type wants.
Expected<Tensor> tensor_of(DType dtype, const Shape& shape, std::string_view bytes);

}  // namespace troupe
