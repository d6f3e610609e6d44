#include "core/tensor_blocks.hpp"

#include <algorithm>
#include <cstring>

namespace troupe {

void copy_elements(const Tensor& from, std::int64_t at, Tensor& into, std::int64_t to,
                   std::int64_t n) {
  if (n == 0) return;
  if (from.dtype() == DType::string) {
    std::copy_n(from.data<std::string>() + at, n, into.mutable_data<std::string>() + to);
    return;
  }
  const std::size_t size = dtype_size(from.dtype());
  std::memcpy(static_cast<char*>(into.mutable_raw()) + std::size_t(to) * size,
              static_cast<const char*>(from.raw()) + std::size_t(at) * size, std::size_t(n) * size);
}

void copy_block(const Tensor& from, Tensor& into, std::int64_t row) {
  const int rank = from.rank();
  if (rank == 0) return copy_elements(from, 0, into, row, 1);
  const std::int64_t inner = from.dim(rank - 1);
  const std::int64_t lines = inner == 0 ? 0 : from.elements() / inner;
  for (std::int64_t line = 0; line < lines; ++line) {
    // Where the line begins: its indices, last first, with the strides of the larger tensor.
    std::int64_t left = line, at = 0, stride = into.dim(rank);
    for (int d = rank - 2; d >= 0; --d) {
      at += left % from.dim(d) * stride;
      left /= from.dim(d);
      stride *= into.dim(d + 1);
    }
    copy_elements(from, line * inner, into, row * stride + at, inner);
  }
}

}  // namespace troupe
