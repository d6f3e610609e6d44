// ConvolutionPlan: how cuDNN computes one convolution.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "devices/cuda/dnn_plan.hpp"

namespace troupe::cuda {

enum class ConvolutionOf : std::uint8_t { y, dx, dfilter };
// What follows on y in the same run: a number for each of its channels is added, and Relu taken of
// the sum.
enum class ConvolutionThen : std::uint8_t { nothing, bias, bias_relu };

// Of images x [n,h,w,c] with filters that lie as [k,h,w,c/groups], giving y [n,h',w',k]; pairs are
// height and width. Or one of its gradients: dx of filter and dy, dfilter of x and dy. Of f32 and
// f64; of f16 and bf16, which are added up in f32 and rounded once.
// What follows is computed of sums that are not rounded. REQUIRES: all sizes are positive, y's
// follow from the others; only y is followed by anything.
struct DnnConvolution {
  ConvolutionOf of = ConvolutionOf::y;
  ConvolutionThen then = ConvolutionThen::nothing;
  DType dtype = DType::f32;
  std::int64_t images = 1, in_channels = 1, out_channels = 1, groups = 1;
  std::array<std::int64_t, 2> in{1, 1}, out{1, 1}, filter{1, 1};
  std::array<std::int64_t, 2> stride{1, 1}, dilation{1, 1};
  std::array<std::int64_t, 2> pad_before{}, pad_after{};
  // Bytes: powers of two, up to 16, that divide the addresses.
  std::int64_t align_x = 16, align_filter = 16, align_y = 16, align_bias = 16;
  auto operator<=>(const DnnConvolution&) const = default;
};

// x, filter and y, of which one is the result, or their gradients; and what is added to y.
struct DnnOperands {
  const void *x = nullptr, *filter = nullptr, *y = nullptr, *bias = nullptr;
};

// The first way that cuDNN's heuristics name, and then of all that it falls back to, which
//  - has the same bits in each run;
//  - computes in the type it is said to: it rounds no input and no sum to fewer bits (f32 to TF32
//    only if that is allowed), and does not go through the transforms of Winograd or Fourier;
//  - needs at most so much workspace, and can be made.
// Immutable. REQUIRES: the library outlives it.
class ConvolutionPlan {
 public:
  using Problem = DnnConvolution;
  using Operands = DnnOperands;
  using Limits = DnnLimits;
  static constexpr const char* kWhat = "convolutions";
  static constexpr std::size_t kMostWorkspace = std::size_t{256} << 20;  // bytes

  // unimplemented: the library knows no such way. Errors name the function that failed.
  static Expected<ConvolutionPlan> make(const Cudnn& library, const DnnConvolution& convolution,
                                        const DnnTarget& target, const Limits& limits);
  // See DnnPlan::make_several.
  static Expected<std::vector<ConvolutionPlan>> make_several(const Cudnn& library,
                                                             const DnnConvolution& convolution,
                                                             const DnnTarget& target,
                                                             const Limits& limits, std::size_t most,
                                                             bool* for_good = nullptr);
  // The convolution, in words that no other has.
  static std::string text_of(const DnnConvolution& convolution);

  // Bytes of device memory that a run needs, aligned to 256, until the stream is through with it.
  std::size_t workspace() const { return plan_.workspace(); }
  // cuDNN's number of the engine.
  std::int64_t engine() const { return plan_.engine(); }
  // Issues it on the handle's stream.
  Status run(DnnHandle handle, const DnnOperands& operands, void* workspace) const;

 private:
  ConvolutionPlan(DnnPlan plan, bool has_bias) : plan_(std::move(plan)), has_bias_(has_bias) {}

  DnnPlan plan_;
  bool has_bias_;
};

}  // namespace troupe::cuda
