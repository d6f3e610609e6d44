#include "devices/cuda/convolution_plan.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

namespace troupe::cuda {
namespace {

using Dims = std::array<std::int64_t, 4>;

// What tensors are called among the pointers of a run.
constexpr std::int64_t kX = 1, kFilter = 2, kY = 3, kBias = 4, kConvolved = 5, kWithBias = 6;

DnnType dnn_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return kDnnF64;
    case DType::f16:
      return kDnnF16;
    case DType::bf16:
      return kDnnBf16;
    default:
      return kDnnF32;
  }
}

// What is multiplied, added up and computed of sums.
DnnType compute_type(DType dtype) { return dtype == DType::f64 ? kDnnF64 : kDnnF32; }

// cuDNN's order of dimensions is n, c, h, w, whatever the layout; here channels lie innermost. A
// tensor that is `between` operations is nowhere in memory.
Expected<DnnDescriptor> tensor(const Cudnn& library, DnnType type, std::int64_t id,
                               const Dims& dims, std::int64_t alignment, bool between = false) {
  const auto [n, c, h, w] = dims;
  TROUPE_TRY(DnnDescriptor made, DnnDescriptor::make(library, kDnnTensor));
  TROUPE_TRY(made.set_enum(kDnnTensorType, kDnnOfType, type));
  TROUPE_TRY(made.set_int64(kDnnTensorDims, dims));
  TROUPE_TRY(made.set_int64(kDnnTensorStrides, Dims{h * w * c, 1, w * c, c}));
  TROUPE_TRY(made.set_int64(kDnnTensorId, id));
  TROUPE_TRY(made.set_int64(kDnnTensorAlignment, alignment));
  if (between) TROUPE_TRY(made.set(kDnnTensorIsVirtual, kDnnOfBool, 1, &between));
  TROUPE_TRY(made.finalize());
  return made;
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

// Descriptors, and those of operations among them, which a graph is made of.
struct Described {
  std::vector<DnnDescriptor> parts, operations;
};

// The convolution itself, whose y is `y`.
Status describe_convolution(const Cudnn& library, const DnnConvolution& c, const DnnDescriptor& y,
                            Described& all) {
  const Attributes& names = kAttributes[std::size_t(c.of)];
  const DnnType type = dnn_type(c.dtype);
  TROUPE_TRY(DnnDescriptor x,
             tensor(library, type, kX, {c.images, c.in_channels, c.in[0], c.in[1]}, c.align_x));
  TROUPE_TRY(
      DnnDescriptor filter,
      tensor(library, type, kFilter,
             {c.out_channels, c.in_channels / c.groups, c.filter[0], c.filter[1]}, c.align_filter));
  TROUPE_TRY(DnnDescriptor sliding, window(library, c));
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(library, names.kind));
  const double one = 1, zero = 0;
  TROUPE_TRY(operation.set(names.alpha, kDnnOfDouble, 1, &one));
  TROUPE_TRY(operation.set(names.beta, kDnnOfDouble, 1, &zero));
  TROUPE_TRY(operation.set_descriptor(names.window, sliding));
  TROUPE_TRY(operation.set_descriptor(names.x, x));
  TROUPE_TRY(operation.set_descriptor(names.filter, filter));
  TROUPE_TRY(operation.set_descriptor(names.y, y));
  TROUPE_TRY(operation.finalize());
  for (DnnDescriptor* part : {&x, &filter, &sliding}) all.parts.push_back(std::move(*part));
  all.operations.push_back(std::move(operation));
  return ok_status();
}

// y = x + b, or Relu of x. cuDNN is asked for a Relu that keeps NaN.
Status describe_pointwise(const Cudnn& library, DnnPointwiseMode mode, DnnType compute,
                          const DnnDescriptor& x, const DnnDescriptor* b, const DnnDescriptor& y,
                          Described& all) {
  TROUPE_TRY(DnnDescriptor function, DnnDescriptor::make(library, kDnnPointwise));
  TROUPE_TRY(function.set_enum(kDnnPointwiseModeIs, kDnnOfPointwiseMode, mode));
  TROUPE_TRY(function.set_enum(kDnnPointwiseCompute, kDnnOfType, compute));
  TROUPE_TRY(function.set_enum(kDnnPointwiseNan, kDnnOfNan, kDnnKeepNan));
  TROUPE_TRY(function.finalize());
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(library, kDnnPointwiseOperation));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseDescriptor, function));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseX, x));
  if (b) TROUPE_TRY(operation.set_descriptor(kDnnPointwiseB, *b));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseY, y));
  TROUPE_TRY(operation.finalize());
  all.parts.push_back(std::move(function));
  all.operations.push_back(std::move(operation));
  return ok_status();
}

// The graph, last, behind what it is made of.
Expected<std::vector<DnnDescriptor>> describe(const Cudnn& library, const DnnConvolution& c,
                                              const DnnTarget& target) {
  const DnnType type = dnn_type(c.dtype), compute = compute_type(c.dtype);
  const Dims dims{c.images, c.out_channels, c.out[0], c.out[1]};
  TROUPE_TRY(DnnDescriptor y, tensor(library, type, kY, dims, c.align_y));
  Described all;
  if (c.then == ConvolutionThen::nothing) {
    TROUPE_TRY(describe_convolution(library, c, y, all));
  } else {
    const bool relu = c.then == ConvolutionThen::bias_relu;
    TROUPE_TRY(DnnDescriptor bias,
               tensor(library, type, kBias, {1, c.out_channels, 1, 1}, c.align_bias));
    TROUPE_TRY(DnnDescriptor convolved, tensor(library, compute, kConvolved, dims, 16, true));
    TROUPE_TRY(DnnDescriptor with_bias, tensor(library, compute, kWithBias, dims, 16, true));
    TROUPE_TRY(describe_convolution(library, c, convolved, all));
    TROUPE_TRY(
        describe_pointwise(library, kDnnAdd, compute, convolved, &bias, relu ? with_bias : y, all));
    if (relu)
      TROUPE_TRY(describe_pointwise(library, kDnnRelu, compute, with_bias, nullptr, y, all));
    for (DnnDescriptor* part : {&bias, &convolved, &with_bias})
      all.parts.push_back(std::move(*part));
  }
  TROUPE_TRY(DnnDescriptor graph, DnnDescriptor::make(library, kDnnOperationGraph));
  TROUPE_TRY(target.of_graph(graph));
  TROUPE_TRY(graph.set_descriptors(kDnnGraphOperations, all.operations));
  TROUPE_TRY(graph.finalize());
  all.parts.push_back(std::move(y));
  for (DnnDescriptor& operation : all.operations) all.parts.push_back(std::move(operation));
  all.parts.push_back(std::move(graph));
  return std::move(all.parts);
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

Expected<std::vector<DnnDescriptor>> named_by(const Cudnn& library, DnnHeuristics mode,
                                              const DnnDescriptor& graph, const DnnTarget& target) {
  TROUPE_TRY(DnnDescriptor heuristics, DnnDescriptor::make(library, kDnnEngineHeuristics));
  TROUPE_TRY(heuristics.set_descriptor(kDnnHeuristicsGraph, graph));
  TROUPE_TRY(heuristics.set_enum(kDnnHeuristicsMode, kDnnOfHeuristics, mode));
  TROUPE_TRY(target.of_heuristics(heuristics));
  TROUPE_TRY(heuristics.finalize());
  return heuristics.get_descriptors(kDnnHeuristicsResults, kDnnEngineConfig);
}

// The engine of a configuration, if its numbers are allowed.
Expected<std::optional<std::int64_t>> allowed_engine(const DnnDescriptor& configuration,
                                                     DType dtype, bool tf32) {
  TROUPE_TRY(const auto engines, configuration.get_descriptors(kDnnConfigEngine, kDnnEngine));
  if (engines.size() != 1) return internal_error("a configuration of cuDNN's has no engine");
  TROUPE_TRY(const auto notes, engines[0].get_notes());
  for (const DnnNumericalNote note : notes)
    if (!allows(dtype, tf32, note)) return std::optional<std::int64_t>();
  TROUPE_TRY(const std::int64_t number, engines[0].get_int64(kDnnEngineIndex));
  return std::optional(number);
}

// `ends`: where there is none, whether others cannot be made either.
Expected<DnnDescriptor> plan_of(const Cudnn& library, const DnnDescriptor& configuration,
                                const DnnTarget& target, bool& ends) {
  ends = true;
  TROUPE_TRY(DnnDescriptor plan, DnnDescriptor::make(library, kDnnExecutionPlan));
  TROUPE_TRY(target.of_plan(plan));
  TROUPE_TRY(plan.set_descriptor(kDnnPlanConfig, configuration));
  const DnnResult result = library.cudnnBackendFinalize(plan.raw());
  Status made = library.check(result, "cudnnBackendFinalize");
  ends = made.code() == Code::resource_exhausted || Cudnn::is_failure_to_execute(result);
  TROUPE_TRY(std::move(made));
  return plan;
}

}  // namespace

Expected<DnnTarget> DnnTarget::described(const Cudnn& library, std::string_view json) {
  DnnTarget target;
  TROUPE_TRY(target.properties_, DnnDescriptor::make(library, kDnnDeviceProperties));
  TROUPE_TRY(
      target.properties_.set(kDnnDeviceJson, kDnnOfChar, std::int64_t(json.size()), json.data()));
  TROUPE_TRY(target.properties_.finalize());
  return target;
}

Status DnnTarget::of_graph(DnnDescriptor& graph) const {
  return handle_ ? graph.set(kDnnGraphHandle, kDnnOfHandle, 1, &handle_) : ok_status();
}

Status DnnTarget::of_heuristics(DnnDescriptor& heuristics) const {
  return handle_ ? ok_status() : heuristics.set_descriptor(kDnnHeuristicsDevice, properties_);
}

Status DnnTarget::of_plan(DnnDescriptor& plan) const {
  return handle_ ? plan.set(kDnnPlanHandle, kDnnOfHandle, 1, &handle_)
                 : plan.set_descriptor(kDnnPlanDevice, properties_);
}

Expected<ConvolutionPlan> ConvolutionPlan::make(const Cudnn& library, const DnnConvolution& c,
                                                const DnnTarget& target, const Limits& limits) {
  TROUPE_TRY(auto plans, make_several(library, c, target, limits, 1));
  return std::move(plans[0]);
}

Expected<std::vector<ConvolutionPlan>> ConvolutionPlan::make_several(
    const Cudnn& library, const DnnConvolution& c, const DnnTarget& target, const Limits& limits,
    std::size_t most, bool* for_good) {
  TROUPE_TRY(std::vector<DnnDescriptor> described, describe(library, c, target));
  const auto parts = std::make_shared<const std::vector<DnnDescriptor>>(std::move(described));
  std::vector<ConvolutionPlan> plans;
  Status refused;  // the first way that may be taken, but cannot be made
  bool unsupported = true;
  for (const DnnHeuristics mode : {kDnnHeuristicsA, kDnnHeuristicsFallback}) {
    if (plans.size() == most) break;
    auto named = named_by(library, mode, parts->back(), target);
    if (!named.ok() && named.status().code() != Code::unimplemented) return named.status();
    if (!named.ok()) {
      if (refused.ok()) refused = named.status();
      continue;
    }
    for (DnnDescriptor& configuration : *named) {
      if (plans.size() == most) break;
      TROUPE_TRY(const auto engine, allowed_engine(configuration, c.dtype, limits.tf32));
      if (!engine) continue;
      bool ends = false;
      auto plan = plan_of(library, configuration, target, ends);
      if (!plan.ok()) {
        if (ends) return plan.status();
        unsupported &= plan.status().code() == Code::unimplemented;
        if (refused.ok()) refused = plan.status();
        continue;
      }
      TROUPE_TRY(const std::int64_t workspace, plan->get_int64(kDnnPlanWorkspace));
      if (workspace < 0 || std::uint64_t(workspace) > limits.workspace) continue;
      plans.push_back(ConvolutionPlan(library, c.then != ConvolutionThen::nothing, parts,
                                      std::move(configuration), std::move(*plan),
                                      std::size_t(workspace), *engine));
    }
  }
  if (!plans.empty()) return plans;
  if (for_good) *for_good = unsupported;
  return unimplemented("cuDNN knows no exact and deterministic way to compute it" +
                       (refused.ok() ? std::string() : ": " + refused.message()));
}

Status ConvolutionPlan::run(DnnHandle handle, const DnnOperands& operands, void* workspace) const {
  TROUPE_TRY(DnnDescriptor pack, DnnDescriptor::make(*library_, kDnnVariantPack));
  const std::array<std::int64_t, 4> ids{kX, kFilter, kY, kBias};
  const void* pointers[] = {operands.x, operands.filter, operands.y, operands.bias};
  const std::size_t count = has_bias_ ? 4 : 3;
  TROUPE_TRY(pack.set_int64(kDnnPackIds, std::span(ids).first(count)));
  TROUPE_TRY(pack.set(kDnnPackPointers, kDnnOfPointer, std::int64_t(count), pointers));
  TROUPE_TRY(pack.set(kDnnPackWorkspace, kDnnOfPointer, 1, &workspace));
  TROUPE_TRY(pack.finalize());
  return library_->check(library_->cudnnBackendExecute(handle, plan_.raw(), pack.raw()),
                         "cudnnBackendExecute");
}

}  // namespace troupe::cuda
