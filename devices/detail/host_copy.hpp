// Copies tensors whose memory this process can read and write.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "core/tensor.hpp"

namespace troupe::detail {

inline void check_copy(const Tensor& src, const Tensor& dst) {
  TROUPE_CHECK(src.dtype() == dst.dtype() && src.elements() == dst.elements(),
               "a copy goes to a tensor of the same dtype and size");
}

inline void copy_elements(const Tensor& src, Tensor dst) {
  if (src.dtype() == DType::string)
    std::copy_n(src.data<std::string>(), src.elements(), dst.mutable_data<std::string>());
  else if (src.bytes() != 0)
    std::memcpy(dst.mutable_raw(), src.raw(), src.bytes());
}

}  // namespace troupe::detail
