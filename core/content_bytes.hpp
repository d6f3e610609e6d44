// How much memory a value takes.
#pragma once

#include <string>

#include "core/tensor.hpp"

namespace troupe {

// With the contents of strings.
inline std::size_t content_bytes(const Tensor& value) {
  if (value.dtype() != DType::string) return value.bytes();
  std::size_t bytes = 0;
  for (const std::string& text : value.span<std::string>()) bytes += sizeof text + text.size();
  return bytes;
}

}  // namespace troupe
