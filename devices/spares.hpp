// Small buffers that the iterations of a loop have done with, for the next ones.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

#include "core/tensor.hpp"

namespace troupe {

// Counters and predicates are made in each iteration, and taking their memory from the device costs
// more than computing them. One buffer of each size is kept. Used by one thread at a time, for a
// device that reads no memory after it was let go.
class Spares {
 public:
  static constexpr std::size_t kLargest = 16;  // bytes: one element

  // Keeps memory of that allocator.
  explicit Spares(const Allocator& allocator) : allocator_(allocator) {}

  // The tensor is let go, and its memory kept when nobody else has it.
  void put(Tensor& tensor) {
    const std::size_t bytes = tensor.buffer().size();
    if (tensor.unique() && std::has_single_bit(bytes) && bytes <= kLargest &&
        is_plain(tensor.dtype()) && tensor.buffer().allocator() == &allocator_)
      of_size(bytes) = tensor.take_buffer();
    else
      tensor = {};
  }
  // Memory for one element, or none.
  Buffer take(DType dtype) {
    return is_plain(dtype) ? std::move(of_size(dtype_size(dtype))) : Buffer();
  }
  void clear() { kept_ = {}; }

 private:
  // Its elements are made of bytes alone, 1 to 16 of them.
  static bool is_plain(DType dtype) { return DType::f32 <= dtype && dtype <= DType::c128; }
  Buffer& of_size(std::size_t bytes) { return kept_[std::size_t(std::countr_zero(bytes))]; }

  const Allocator& allocator_;
  std::array<Buffer, 5> kept_;
};

}  // namespace troupe
