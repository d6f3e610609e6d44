// Tensor: dtype + shape + buffer. A value, cheap to copy, immutable once published.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "core/buffer.hpp"
#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace troupe {

// An n-dimensional array, row-major, contiguous. Copies share the buffer. Whoever makes a tensor
// may write it until the first copy is handed out; from then on nobody writes it (in-place kernels
// ask `unique()`). The buffer may be larger than the tensor and the data may start inside it
// (a slice along dimension 0), so data() is aligned to the element, not always to 64.
class Tensor {
 public:
  Tensor() = default;  // no dtype, no buffer: "nothing"
  Tensor(DType dtype, Shape shape, Buffer buffer, std::size_t offset = 0)
      : buffer_(std::move(buffer)), shape_(shape), offset_(offset), dtype_(dtype) {}

  // Uninitialised elements (strings are empty). resource_exhausted, or invalid_argument when the
  // byte size overflows or the dtype has no elements.
  static Expected<Tensor> make(DType dtype, const Shape& shape,
                               Allocator& allocator = heap_allocator());
  static Expected<Tensor> zeros(DType dtype, const Shape& shape,
                                Allocator& allocator = heap_allocator());
  template <class T>
  requires(dtype_of<T> != DType::invalid) static Tensor scalar(T value) {
    return of<T>(Shape{}, std::span<const T>(&value, 1));
  }
  static Tensor scalar(std::string_view value);
  // REQUIRES: values.size() == shape.elements(), and memory for them (heap).
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values);
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()));
  }

  bool defined() const { return dtype_ != DType::invalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t dim(int i) const { return shape_.dim(i); }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return std::size_t(elements()) * dtype_size(dtype_); }
  const Buffer& buffer() const { return buffer_; }
  std::size_t offset() const { return offset_; }
  MemorySpace space() const { return buffer_.space(); }
  // Nobody else holds the buffer: it may be written or reused.
  bool unique() const { return buffer_.unique(); }
  // The buffer alone; the tensor is nothing afterwards.
  Buffer take_buffer() {
    shape_ = {};
    offset_ = 0;
    dtype_ = DType::invalid;
    return std::move(buffer_);
  }

  const void* raw() const { return static_cast<const char*>(buffer_.data()) + offset_; }
  void* mutable_raw() { return static_cast<char*>(buffer_.data()) + offset_; }
  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw());
  }
  template <class T>
  T* mutable_data() {
    return static_cast<T*>(mutable_raw());
  }
  template <class T>
  std::span<const T> span() const {
    return {data<T>(), std::size_t(elements())};
  }
  // REQUIRES: one element of type T.
  template <class T>
  const T& item() const {
    TROUPE_CHECK(dtype_ == dtype_of<T> && elements() == 1, "item() wants one element of that type");
    return *data<T>();
  }

  // The same elements under another shape. REQUIRES: equal element counts.
  Tensor reshaped(const Shape& shape) const;
  // The same bits under another dtype of the same size. REQUIRES: equal sizes, no strings.
  Tensor retyped(DType dtype) const;
  // Rows [begin, end) of dimension 0, sharing the buffer. REQUIRES: 0 <= begin <= end <= dim(0).
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // A copy with a buffer of its own from `allocator`.
  Expected<Tensor> clone(Allocator& allocator = heap_allocator()) const;

  // "f32[2,3] {1, 2, 3, ...}", at most `limit` elements; host tensors only show values.
  std::string text(int limit = 8) const;

  // Same dtype, shape and element bits (strings by value). Host memory only.
  static bool same(const Tensor& a, const Tensor& b);

 private:
  Buffer buffer_;
  Shape shape_;
  std::size_t offset_ = 0;
  DType dtype_ = DType::invalid;
};

}  // namespace troupe

template <class T>
troupe::Tensor troupe::Tensor::of(const Shape& shape, std::span<const T> values) {
  auto made = make(dtype_of<T>, shape);
  TROUPE_CHECK(made.ok() && std::int64_t(values.size()) == shape.elements(),
               "Tensor::of: values do not fill the shape");
  Tensor t = std::move(made).value();
  for (std::size_t i = 0; i < values.size(); ++i) t.mutable_data<T>()[i] = values[i];
  return t;
}
