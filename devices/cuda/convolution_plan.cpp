#include "devices/cuda/convolution_plan.hpp"

#include <fmt/format.h>

#include <span>
#include <vector>

namespace troupe::cuda {
namespace {

using Dims = std::array<std::int64_t, 4>;

// What tensors are called among the pointers of a run.
constexpr std::int64_t kX = 1, kFilter = 2, kY = 3, kBias = 4, kConvolved = 5, kWithBias = 6;

// What is multiplied, added up and computed of sums.
DnnType compute_type(DType dtype) { return dtype == DType::f64 ? kDnnF64 : kDnnF32; }

// cuDNN's order of dimensions is n, c, h, w, whatever the layout; here channels lie innermost.
DnnGraph::Tensor tensor(DnnType type, std::int64_t id, const Dims& dims, std::int64_t alignment,
                        bool between = false) {
  const auto [n, c, h, w] = dims;
  return {type,      id,
          dims,      {h * w * c, 1, w * c, c},
          alignment, between ? DnnGraph::Tensor::between : DnnGraph::Tensor::in_memory};
}

Expected<DnnDescriptor> window(const Cudnn& library, const DnnConvolution& c) {
  TROUPE_TRY(DnnDescriptor made, DnnDescriptor::make(library, kDnnConvolution));
  TROUPE_TRY(made.set_enum(kDnnConvolutionCompute, kDnnOfType, compute_type(c.dtype)));
  TROUPE_TRY(made.set_enum(kDnnConvolutionModeIs, kDnnOfConvolutionMode, kDnnCrossCorrelation));
  TROUPE_TRY(made.set_int64(kDnnConvolutionDims, 2));
  TROUPE_TRY(made.set_int64(kDnnConvolutionDilations, c.dilation));
  TROUPE_TRY(made.set_int64(kDnnConvolutionStrides, c.stride));
  TROUPE_TRY(made.set_int64(kDnnConvolutionPaddingsBefore, c.pad_before));
  TROUPE_TRY(made.set_int64(kDnnConvolutionPaddingsAfter, c.pad_after));
  TROUPE_TRY(made.finalize());
  return made;
}

// Attributes of the three operations, by ConvolutionOf.
struct Attributes {
  DnnKind kind;
  DnnAttribute alpha, beta, window, x, filter, y;
};
constexpr Attributes kAttributes[] = {
    {kDnnForward, kDnnForwardAlpha, kDnnForwardBeta, kDnnForwardConvolution, kDnnForwardX,
     kDnnForwardFilter, kDnnForwardY},
    {kDnnBackwardData, kDnnBackwardDataAlpha, kDnnBackwardDataBeta, kDnnBackwardDataConvolution,
     kDnnBackwardDataDx, kDnnBackwardDataFilter, kDnnBackwardDataDy},
    {kDnnBackwardFilter, kDnnBackwardFilterAlpha, kDnnBackwardFilterBeta,
     kDnnBackwardFilterConvolution, kDnnBackwardFilterX, kDnnBackwardFilterDfilter,
     kDnnBackwardFilterDy}};

// The convolution itself, whose y is `y`.
Status describe_convolution(const Cudnn& library, const DnnConvolution& c, DnnGraph::Number y,
                            DnnGraph& graph) {
  const Attributes& names = kAttributes[std::size_t(c.of)];
  const DnnType type = dnn_type(c.dtype);
  TROUPE_TRY(const auto x,
             graph.add(tensor(type, kX, {c.images, c.in_channels, c.in[0], c.in[1]}, c.align_x)));
  TROUPE_TRY(const auto filter,
             graph.add(tensor(type, kFilter,
                              {c.out_channels, c.in_channels / c.groups, c.filter[0], c.filter[1]},
                              c.align_filter)));
  TROUPE_TRY(DnnDescriptor sliding, window(library, c));
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(library, names.kind));
  const double one = 1, zero = 0;
  TROUPE_TRY(operation.set(names.alpha, kDnnOfDouble, 1, &one));
  TROUPE_TRY(operation.set(names.beta, kDnnOfDouble, 1, &zero));
  TROUPE_TRY(operation.set_descriptor(names.window, sliding));
  TROUPE_TRY(operation.set_descriptor(names.x, graph.tensor(x)));
  TROUPE_TRY(operation.set_descriptor(names.filter, graph.tensor(filter)));
  TROUPE_TRY(operation.set_descriptor(names.y, graph.tensor(y)));
  TROUPE_TRY(operation.finalize());
  graph.add_operation(std::move(operation), std::move(sliding));
  return ok_status();
}

Expected<std::vector<DnnDescriptor>> describe(const Cudnn& library, const DnnConvolution& c,
                                              const DnnTarget& target) {
  const DnnType type = dnn_type(c.dtype), compute = compute_type(c.dtype);
  const Dims dims{c.images, c.out_channels, c.out[0], c.out[1]};
  DnnGraph graph(library);
  TROUPE_TRY(const auto y, graph.add(tensor(type, kY, dims, c.align_y)));
  if (c.then == ConvolutionThen::nothing) {
    TROUPE_TRY(describe_convolution(library, c, y, graph));
    return std::move(graph).finish(target);
  }
  const bool relu = c.then == ConvolutionThen::bias_relu;
  TROUPE_TRY(const auto bias,
             graph.add(tensor(type, kBias, {1, c.out_channels, 1, 1}, c.align_bias)));
  TROUPE_TRY(const auto convolved, graph.add(tensor(compute, kConvolved, dims, 16, true)));
  TROUPE_TRY(const auto with_bias, graph.add(tensor(compute, kWithBias, dims, 16, true)));
  TROUPE_TRY(describe_convolution(library, c, convolved, graph));
  TROUPE_TRY(graph.add({.mode = kDnnAdd,
                        .x = convolved,
                        .y = relu ? with_bias : y,
                        .compute = compute,
                        .b = bias,
                        .asks_for_nan = true}));
  if (relu)
    TROUPE_TRY(graph.add(
        {.mode = kDnnRelu, .x = with_bias, .y = y, .compute = compute, .asks_for_nan = true}));
  return std::move(graph).finish(target);
}

bool allows(DType dtype, bool tf32, DnnNumericalNote note) {
  switch (note) {
    case kDnnTensorCore:
      return dtype != DType::f32 || tf32;  // those have no f32
    case kDnnStrictNanPropagation:
      return true;
    default:  // those that are known round, transform or add in any order; others may
      return false;
  }
}

}  // namespace

Expected<ConvolutionPlan> ConvolutionPlan::make(const Cudnn& library, const DnnConvolution& c,
                                                const DnnTarget& target, const Limits& limits) {
  TROUPE_TRY(auto plans, make_several(library, c, target, limits, 1));
  return std::move(plans[0]);
}

Expected<std::vector<ConvolutionPlan>> ConvolutionPlan::make_several(
    const Cudnn& library, const DnnConvolution& c, const DnnTarget& target, const Limits& limits,
    std::size_t most, bool* for_good) {
  TROUPE_TRY(std::vector<DnnDescriptor> graph, describe(library, c, target));
  const auto allowed = [&](DnnNumericalNote note) { return allows(c.dtype, limits.tf32, note); };
  TROUPE_TRY(auto made, DnnPlan::make_several(library, std::move(graph), target, limits.workspace,
                                              allowed, most, for_good));
  std::vector<ConvolutionPlan> plans;
  for (DnnPlan& plan : made)
    plans.push_back(ConvolutionPlan(std::move(plan), c.then != ConvolutionThen::nothing));
  return plans;
}

std::string ConvolutionPlan::text_of(const DnnConvolution& c) {
  std::string text = fmt::format("{} {} {} {} {} {}, {} {} {}, {} {}, {} {}, {} {} {}", int(c.of),
                                 dtype_name(c.dtype), c.images, c.in_channels, c.out_channels,
                                 c.groups, fmt::join(c.in, "x"), fmt::join(c.out, "x"),
                                 fmt::join(c.filter, "x"), fmt::join(c.stride, "x"),
                                 fmt::join(c.dilation, "x"), fmt::join(c.pad_before, "x"),
                                 fmt::join(c.pad_after, "x"), c.align_x, c.align_filter, c.align_y);
  if (c.then != ConvolutionThen::nothing)
    text += fmt::format(", then {} {}", int(c.then), c.align_bias);
  return text;
}

Status ConvolutionPlan::run(DnnHandle handle, const DnnOperands& operands, void* workspace) const {
  const std::array<std::int64_t, 4> ids{kX, kFilter, kY, kBias};
  const std::array<const void*, 4> pointers{operands.x, operands.filter, operands.y, operands.bias};
  const std::size_t count = has_bias_ ? 4 : 3;
  return plan_.run(handle, std::span(ids).first(count), std::span(pointers).first(count),
                   workspace);
}

}  // namespace troupe::cuda
