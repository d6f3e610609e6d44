#include "devices/cuda/dnn_plan.hpp"

#include <string>
#include <utility>

namespace troupe::cuda {
namespace {

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
                                                     FunctionRef<bool(DnnNumericalNote)> allows) {
  TROUPE_TRY(const auto engines, configuration.get_descriptors(kDnnConfigEngine, kDnnEngine));
  if (engines.size() != 1) return internal_error("a configuration of cuDNN's has no engine");
  TROUPE_TRY(const auto notes, engines[0].get_notes());
  for (const DnnNumericalNote note : notes)
    if (!allows(note)) return std::optional<std::int64_t>();
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

Expected<DnnGraph::Number> DnnGraph::add(const Tensor& tensor) {
  const bool yes = true;
  TROUPE_TRY(DnnDescriptor made, DnnDescriptor::make(*library_, kDnnTensor));
  TROUPE_TRY(made.set_enum(kDnnTensorType, kDnnOfType, tensor.type));
  TROUPE_TRY(made.set_int64(kDnnTensorDims, tensor.dims));
  TROUPE_TRY(made.set_int64(kDnnTensorStrides, tensor.strides));
  TROUPE_TRY(made.set_int64(kDnnTensorId, tensor.id));
  TROUPE_TRY(made.set_int64(kDnnTensorAlignment, tensor.alignment));
  if (tensor.kind == Tensor::between)
    TROUPE_TRY(made.set(kDnnTensorIsVirtual, kDnnOfBool, 1, &yes));
  if (tensor.kind == Tensor::by_value)
    TROUPE_TRY(made.set(kDnnTensorIsByValue, kDnnOfBool, 1, &yes));
  TROUPE_TRY(made.finalize());
  tensors_.push_back(std::move(made));
  return tensors_.size() - 1;
}

void DnnGraph::add_operation(DnnDescriptor operation, DnnDescriptor made_of) {
  operations_.push_back(std::move(operation));
  parts_.push_back(std::move(made_of));
}

Status DnnGraph::add(const Pointwise& of) {
  TROUPE_TRY(DnnDescriptor function, DnnDescriptor::make(*library_, kDnnPointwise));
  TROUPE_TRY(function.set_enum(kDnnPointwiseModeIs, kDnnOfPointwiseMode, of.mode));
  TROUPE_TRY(function.set_enum(kDnnPointwiseCompute, kDnnOfType, of.compute));
  if (of.asks_for_nan) TROUPE_TRY(function.set_enum(kDnnPointwiseNan, kDnnOfNan, kDnnKeepNan));
  if (of.axis) TROUPE_TRY(function.set_int64(kDnnPointwiseAxis, *of.axis));
  TROUPE_TRY(function.finalize());
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(*library_, kDnnPointwiseOperation));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseDescriptor, function));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseX, tensors_[of.x]));
  if (of.b) TROUPE_TRY(operation.set_descriptor(kDnnPointwiseB, tensors_[*of.b]));
  if (of.t) TROUPE_TRY(operation.set_descriptor(kDnnPointwiseT, tensors_[*of.t]));
  TROUPE_TRY(operation.set_descriptor(kDnnPointwiseY, tensors_[of.y]));
  TROUPE_TRY(operation.finalize());
  add_operation(std::move(operation), std::move(function));
  return ok_status();
}

Status DnnGraph::add_product(Number a, Number b, Number y) {
  TROUPE_TRY(DnnDescriptor product, DnnDescriptor::make(*library_, kDnnMatmul));
  TROUPE_TRY(product.set_enum(kDnnMatmulCompute, kDnnOfType, kDnnF32));
  TROUPE_TRY(product.finalize());
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(*library_, kDnnMatmulOperation));
  TROUPE_TRY(operation.set_descriptor(kDnnMatmulA, tensors_[a]));
  TROUPE_TRY(operation.set_descriptor(kDnnMatmulB, tensors_[b]));
  TROUPE_TRY(operation.set_descriptor(kDnnMatmulC, tensors_[y]));
  TROUPE_TRY(operation.set_descriptor(kDnnMatmulDescriptor, product));
  TROUPE_TRY(operation.finalize());
  add_operation(std::move(operation), std::move(product));
  return ok_status();
}

Status DnnGraph::add_reduction(DnnReduction by, Number x, Number y) {
  TROUPE_TRY(DnnDescriptor reduction, DnnDescriptor::make(*library_, kDnnReduction));
  TROUPE_TRY(reduction.set_enum(kDnnReductionOperator, kDnnOfReduction, by));
  TROUPE_TRY(reduction.set_enum(kDnnReductionCompute, kDnnOfType, kDnnF32));
  TROUPE_TRY(reduction.finalize());
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(*library_, kDnnReductionOperation));
  TROUPE_TRY(operation.set_descriptor(kDnnReductionX, tensors_[x]));
  TROUPE_TRY(operation.set_descriptor(kDnnReductionY, tensors_[y]));
  TROUPE_TRY(operation.set_descriptor(kDnnReductionDescriptor, reduction));
  TROUPE_TRY(operation.finalize());
  add_operation(std::move(operation), std::move(reduction));
  return ok_status();
}

Status DnnGraph::add_view(Number x, Number y) {
  TROUPE_TRY(DnnDescriptor operation, DnnDescriptor::make(*library_, kDnnReshapeOperation));
  TROUPE_TRY(operation.set_descriptor(kDnnReshapeX, tensors_[x]));
  TROUPE_TRY(operation.set_descriptor(kDnnReshapeY, tensors_[y]));
  TROUPE_TRY(operation.finalize());
  add_operation(std::move(operation), {});
  return ok_status();
}

Expected<std::vector<DnnDescriptor>> DnnGraph::finish(const DnnTarget& target) && {
  TROUPE_TRY(DnnDescriptor graph, DnnDescriptor::make(*library_, kDnnOperationGraph));
  TROUPE_TRY(target.of_graph(graph));
  TROUPE_TRY(graph.set_descriptors(kDnnGraphOperations, operations_));
  TROUPE_TRY(graph.finalize());
  std::vector<DnnDescriptor> all = std::move(tensors_);
  for (std::vector<DnnDescriptor>* some : {&parts_, &operations_})
    for (DnnDescriptor& one : *some) all.push_back(std::move(one));
  all.push_back(std::move(graph));
  return all;
}

Expected<std::vector<DnnPlan>> DnnPlan::make_several(const Cudnn& library,
                                                     std::vector<DnnDescriptor> graph,
                                                     const DnnTarget& target, std::size_t workspace,
                                                     FunctionRef<bool(DnnNumericalNote)> allows,
                                                     std::size_t most, bool* for_good) {
  const auto parts = std::make_shared<const std::vector<DnnDescriptor>>(std::move(graph));
  std::vector<DnnPlan> plans;
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
      TROUPE_TRY(const auto engine, allowed_engine(configuration, allows));
      if (!engine) continue;
      bool ends = false;
      auto plan = plan_of(library, configuration, target, ends);
      if (!plan.ok()) {
        if (ends) return plan.status();
        unsupported &= plan.status().code() == Code::unimplemented;
        if (refused.ok()) refused = plan.status();
        continue;
      }
      TROUPE_TRY(const std::int64_t needs, plan->get_int64(kDnnPlanWorkspace));
      if (needs < 0 || std::uint64_t(needs) > workspace) continue;
      plans.push_back(DnnPlan(library, parts, std::move(configuration), std::move(*plan),
                              std::size_t(needs), *engine));
    }
  }
  if (!plans.empty()) return plans;
  if (for_good) *for_good = unsupported;
  return unimplemented("cuDNN knows no exact and deterministic way to compute it" +
                       (refused.ok() ? std::string() : ": " + refused.message()));
}

Status DnnPlan::run(DnnHandle handle, std::span<const std::int64_t> ids,
                    std::span<const void* const> pointers, void* workspace) const {
  TROUPE_TRY(DnnDescriptor pack, DnnDescriptor::make(*library_, kDnnVariantPack));
  TROUPE_TRY(pack.set_int64(kDnnPackIds, ids));
  TROUPE_TRY(
      pack.set(kDnnPackPointers, kDnnOfPointer, std::int64_t(pointers.size()), pointers.data()));
  TROUPE_TRY(pack.set(kDnnPackWorkspace, kDnnOfPointer, 1, &workspace));
  TROUPE_TRY(pack.finalize());
  return library_->check(library_->cudnnBackendExecute(handle, plan_.raw(), pack.raw()),
                         "cudnnBackendExecute");
}

}  // namespace troupe::cuda
