// Tensor: dtype + shape + buffer. A value, cheap to copy, immutable once published.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

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
  // On the heap. Throws Error unless the values fill the shape and there is memory for them.
  template <class T>
  static Tensor of(const Shape& shape, std::span<const T> values,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE());
  template <class T>
  static Tensor of(const Shape& shape, std::initializer_list<T> values,
                   const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return of<T>(shape, std::span<const T>(values.begin(), values.size()), file, line);
  }

  bool defined() const { return dtype_ != DType::invalid; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t dim(int i, const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return shape_.dim(i, file, line);
  }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return std::size_t(elements()) * dtype_size(dtype_); }
  const Buffer& buffer() const { return buffer_; }
  std::size_t offset() const { return offset_; }
  MemorySpace space() const { return buffer_.space(); }
  // Nobody else holds the buffer: it may be written or reused.
  bool unique() const { return buffer_.unique(); }
  // A type and a shape whose elements are zeros that take no memory: only in gradients of lists.
  bool zeros_alone() const { return defined() && !buffer_ && bytes() != 0; }
  // The buffer alone; the tensor is nothing afterwards.
  Buffer take_buffer() {
    shape_ = {};
    offset_ = 0;
    dtype_ = DType::invalid;
    return std::move(buffer_);
  }

  const void* raw() const { return static_cast<const char*>(buffer_.data()) + offset_; }
  void* mutable_raw() { return static_cast<char*>(buffer_.data()) + offset_; }
  // The elements. Throw Error for a T that is not the tensor's; as char its bytes.
  template <class T>
  const T* data(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    check_type<T>(file, line);
    return static_cast<const T*>(raw());
  }
  template <class T>
  T* mutable_data(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    check_type<T>(file, line);
    return static_cast<T*>(mutable_raw());
  }
  template <class T>
  std::span<const T> span(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    return {data<T>(file, line), std::size_t(elements())};
  }
  // Throws Error unless there is one element, of type T.
  template <class T>
  const T& item(const char* file = __builtin_FILE(), int line = __builtin_LINE()) const {
    if (dtype_ != dtype_of<T> || elements() != 1) [[unlikely]]
      no_item(dtype_of<T>, file, line);
    return *static_cast<const T*>(raw());
  }

  // These throw Error where they cannot.
  // The same elements under another shape, of as many.
  Tensor reshaped(const Shape& shape) const;
  // The same bits under another dtype of the same size; not of strings.
  Tensor retyped(DType dtype) const;
  // Rows [begin, end) of dimension 0, sharing the buffer: 0 <= begin <= end <= dim(0).
  Tensor rows(std::int64_t begin, std::int64_t end) const;
  // A copy with a buffer of its own from `allocator`.
  Expected<Tensor> clone(Allocator& allocator = heap_allocator()) const;

  // "f32[2,3] {1, 2, 3, ...}", at most `limit` elements; host tensors only show values.
  std::string text(int limit = 8) const;

  // Whether an element, or the part of one, is no number; never of what has no such elements. Host
  // memory only.
  bool has_nan() const;
  // Same dtype, shape and element bits (strings by value). Host memory only.
  static bool same(const Tensor& a, const Tensor& b);

 private:
  template <class T>
  void check_type(const char* file, int line) const {
    static_assert(dtype_of<T> != DType::invalid || std::is_same_v<T, char>,
                  "no tensor has elements of this type");
    if (!std::is_same_v<T, char> && dtype_ != dtype_of<T>) [[unlikely]]
      wrong_type(dtype_of<T>, file, line);
  }
  [[noreturn]] void wrong_type(DType wanted, const char* file, int line) const;
  [[noreturn]] void no_item(DType wanted, const char* file, int line) const;
  static Tensor to_fill(DType dtype, const Shape& shape, std::size_t values, const char* file,
                        int line);

  Buffer buffer_;
  Shape shape_;
  std::size_t offset_ = 0;
  DType dtype_ = DType::invalid;
};

}  // namespace troupe

template <class T>
troupe::Tensor troupe::Tensor::of(const Shape& shape, std::span<const T> values, const char* file,
                                  int line) {
  Tensor t = to_fill(dtype_of<T>, shape, values.size(), file, line);
  std::copy(values.begin(), values.end(), static_cast<T*>(t.mutable_raw()));
  return t;
}
