// Elements that are moved and never looked at: of any type, told apart by their size alone (strings
// are copied as such). Compiled once for all ops.
#pragma once

#include <cstring>
#include <string>

#include "devices/chunks.hpp"
#include "ops/kernels/support/broadcast.hpp"
#include "ops/kernels/support/strided.hpp"
#include "ops/op.hpp"

namespace troupe {

// How elements of one type are moved. Looked up once, then used for many short rows.
class Moves {
 public:
  explicit Moves(DType dtype);

  // Element i of `data`.
  const void* at(const void* data, std::int64_t i) const {
    return static_cast<const char*>(data) + i * size_;
  }
  void* at(void* data, std::int64_t i) const { return static_cast<char*>(data) + i * size_; }
  // to[0 .. n) = from[0 .. n). They do not overlap.
  void copy(const void* from, std::int64_t n, void* to) const {
    const auto bytes = std::size_t(n * size_);
    if (strings_)
      std::copy_n(static_cast<const std::string*>(from), n, static_cast<std::string*>(to));
    else if (bytes == 4)  // a number, for which a call takes longer than to move it
      std::memcpy(to, from, 4);
    else if (bytes == 8)
      std::memcpy(to, from, 8);
    else
      std::memcpy(to, from, bytes);
  }
  // to[0 .. n) = *value.
  void fill(const void* value, std::int64_t n, void* to) const { fill_(value, n, to); }

 private:
  std::int64_t size_;
  bool strings_;
  void (*fill_)(const void*, std::int64_t, void*);
};

// All of `y` = *value, on all lanes.
void fill_tensor(const KernelContext& ctx, const void* value, Tensor& y);
// All of `y`, of numbers, = 0.
void fill_zeros(const KernelContext& ctx, Tensor& y);
// y = x repeated, on all lanes. `meet` is of the shapes of y and x.
void repeat_tensor(const KernelContext& ctx, const Broadcast<2>& meet, const Tensor& x, Tensor& y);
// to[b . index] = from[a . index] for every index below `dims`, in chunks of rows on all lanes.
void strided_copy(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                  const Strides& a, void* to, const Strides& b);

}  // namespace troupe
