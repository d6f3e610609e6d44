#include "ops/evaluate.hpp"

#include <fmt/format.h>

#include <numeric>

#include "core/float_environment.hpp"
#include "devices/kernel_call.hpp"

namespace troupe {

Expected<std::vector<Tensor>> call_with(Kernel& kernel, std::vector<Tensor> inputs,
                                        std::size_t outputs, const KernelPlace& place,
                                        bool in_place, const RandomState& random) {
  std::vector<Slot> slots(inputs.size()), made(outputs);
  for (std::size_t i = 0; i < inputs.size(); ++i) slots[i].tensor = std::move(inputs[i]);
  std::vector<std::uint32_t> indices(slots.size()), readers(slots.size(), 1);
  std::iota(indices.begin(), indices.end(), 0u);
  KernelContext ctx({.slots = slots.data(),
                     .input_slots = indices.data(),
                     .readers = in_place ? readers.data() : nullptr,
                     .outputs = made.data(),
                     .inputs = std::uint16_t(slots.size()),
                     .n_outputs = std::uint16_t(outputs),
                     .place = &place,
                     .random = random});
  TROUPE_TRY(call_kernel(kernel, ctx));
  std::vector<Tensor> results;
  for (Slot& slot : made) results.push_back(std::move(slot.tensor));
  return results;
}

namespace {

Expected<std::vector<Tensor>> run(const OpTable& table, const NodeDef& node,
                                  std::vector<Tensor> inputs, Device& device,
                                  const EvaluateOptions& options) {
  const FloatEnvironment kernels_own;
  TROUPE_TRY(auto* op, table.ops.lookup(node.op));
  TROUPE_TRY(auto kernel, table.kernels.make(node, *op, "CPU"));
  InlineLanes inline_lanes;
  const KernelPlace place{.device = &device,
                          .lanes = options.lanes != nullptr ? options.lanes : &inline_lanes};
  TROUPE_TRY(std::vector<Tensor> results,
             call_with(*kernel, std::move(inputs), node.out_types.size(), place, options.in_place,
                       options.random));
  for (std::size_t i = 0; i < results.size(); ++i)
    if (results[i].dtype() != node.out_types[i])
      return internal_error(fmt::format("kernel of {} produced {} at output {}, not {}", node.op,
                                        dtype_name(results[i].dtype()), i,
                                        dtype_name(node.out_types[i])));
  return results;
}

}  // namespace

Expected<std::vector<Tensor>> evaluate(const OpTable& table, const NodeDef& node,
                                       std::vector<Tensor> inputs, Device& device,
                                       const EvaluateOptions& options) {
  if (inputs.size() != node.inputs.size())
    return invalid_argument(fmt::format("node '{}' takes {} inputs, not {}", node.name,
                                        node.inputs.size(), inputs.size()));
  auto results = run(table, node, std::move(inputs), device, options);
  if (results.ok()) return results;
  return results.status().at(node.site).in(fmt::format("in node '{}' ({})", node.name, node.op));
}

}  // namespace troupe
