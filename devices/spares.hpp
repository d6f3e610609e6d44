// Recycles small buffers between the iterations of a loop.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "core/tensor.hpp"

namespace troupe {

// Counters and predicates are made in each iteration, and allocating their memory costs more than
// computing them. Keeps one buffer of each size. Used by one thread at a time, for a device that
// does not read released memory.
class Spares {
 public:
  static constexpr std::size_t kLargest = 16;  // bytes: one element

  // Keeps only memory of that allocator.
  explicit Spares(const Allocator& allocator) : allocator_(allocator) {}

  // Releases the tensor, and keeps its memory if nothing else holds it.
  void put(Tensor& tensor) {
    const std::size_t bytes = tensor.buffer().size();
    if (bytes <= kLargest && tensor.unique() && std::has_single_bit(bytes) &&
        is_plain(tensor.dtype()) && tensor.buffer().allocator() == &allocator_)
      of_size(bytes) = tensor.take_buffer();
    else
      (void)tensor.take_buffer();  // faster than to assign another tensor
  }
  // Memory for one element, or an empty buffer.
  Buffer take(DType dtype) {
    return is_plain(dtype) ? std::move(of_size(dtype_size(dtype))) : Buffer();
  }
  void clear() { kept_ = {}; }

 private:
  // Whether its elements are plain bytes, 1 to 16 of them.
  static bool is_plain(DType dtype) { return DType::f32 <= dtype && dtype <= DType::c128; }
  Buffer& of_size(std::size_t bytes) { return kept_[std::size_t(std::countr_zero(bytes))]; }

  const Allocator& allocator_;
  std::array<Buffer, 5> kept_;
};

}  // namespace troupe
