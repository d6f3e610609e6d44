// What the kernels ask of oneDNN, without its types: matrix products and convolutions in f32.
//
// Every function here runs on the calling thread alone: intra-op parallelism is ours (Lanes), and
// a primitive that were created or run under several OpenMP threads would sum in another order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "core/status.hpp"

namespace troupe::onednn {

// "2.6.3": part of the numeric profile.
std::string version();

// Caps the instruction set at x86-64-v2, -v3 or -v4. failed_precondition once anything ran.
Status limit_isa(int level);

// C = op(A) * op(B) + beta * C, row-major; op(A) is m x k and op(B) is k x n. A leading dimension
// is the distance of two rows as stored. REQUIRES: m, n, k >= 1.
Status sgemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k,
             const float* a, std::int64_t lda, const float* b, std::int64_t ldb, float beta,
             float* c, std::int64_t ldc);

// Products of fixed sizes with a right operand that is used more than once, in a layout of its own,
// `packed`: faster than sgemm, which lays it out anew each time. Costly to make, immutable
// afterwards: any number of threads may use it at once, each with its own scratch.
class Product {
 public:
  struct Sizes {
    std::int64_t m = 0, n = 0, k = 0;
    std::int64_t lda = 0, ldc = 0;  // from row to row of A and C, as stored
    friend bool operator==(const Sizes&, const Sizes&) = default;
  };
  // `like` fixes the packed layout to that of another product of the same n and k. unimplemented
  // when there is no such primitive. REQUIRES: all sizes are at least 1.
  static Expected<std::unique_ptr<Product>> make(const Sizes& sizes, const Product* like = nullptr);
  ~Product();

  std::size_t packed_bytes() const;
  std::size_t scratch_bytes() const;
  // op(B) [k,n], of rows that are ldb elements apart as stored.
  Status pack(const float* b, std::int64_t ldb, bool transpose, void* packed) const;
  // C = A op(B). `packed` and `scratch` are aligned to 64 bytes.
  Status run(const float* a, const void* packed, float* c, void* scratch) const;

 private:
  struct State;
  explicit Product(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

enum class ConvKind : std::uint8_t { forward, backward_data, backward_filter };

// Activations are NHWC, filters HWIO. Dilation 1 is the dense window. Group g of the output
// channels sees group g of the input channels alone: I of the filter is in_c / groups.
struct ConvShape {
  std::int64_t batch = 0, in_h = 0, in_w = 0, in_c = 0;
  std::int64_t out_h = 0, out_w = 0, out_c = 0;
  std::int64_t filter_h = 0, filter_w = 0, groups = 1;
  std::int64_t stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_bottom = 0, pad_left = 0, pad_right = 0;
};

// One direction of one convolution of fixed shape. Costly to make (a JIT run, up to a millisecond),
// immutable afterwards: any number of threads may run it at once, each with its own scratch. The
// filter (or its gradient) is in a layout of its own, `packed`; pack and unpack convert.
class Conv {
 public:
  // `like` fixes the packed layout to that of another primitive of the same direction, so that
  // chunks of different batch sizes share packed filters. unimplemented when there is no such
  // primitive.
  static Expected<std::unique_ptr<Conv>> make(ConvKind kind, const ConvShape& shape,
                                              const Conv* like = nullptr);
  ~Conv();

  std::size_t packed_bytes() const;
  std::size_t scratch_bytes() const;
  Status pack(const float* hwio, void* packed) const;
  Status unpack(const void* packed, float* hwio) const;

  // The three directions; call the one of this primitive's kind. Buffers of `packed` and `scratch`
  // are aligned to 64 bytes. run_backward_filter overwrites `packed_filter`.
  Status run_forward(const float* x, const void* packed_filter, float* y, void* scratch) const;
  Status run_backward_data(const float* dy, const void* packed_filter, float* dx,
                           void* scratch) const;
  Status run_backward_filter(const float* x, const float* dy, void* packed_filter,
                             void* scratch) const;

 private:
  struct State;
  explicit Conv(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace troupe::onednn
