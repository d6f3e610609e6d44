#include "actors/update_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace troupe {
namespace {

constexpr std::int64_t kChunk = 32 * 1024;  // elements; a function of the shape alone

template <class T>
void add_into(T* sum, const T* other, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum[i] = T(sum[i] + other[i]);
}
template <class T>
void divide(T* sum, std::int64_t n, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum[i] = T(sum[i] / T(n));
}

// Sum or mean in replica order.
template <class T>
Expected<Tensor> join(const std::vector<const Tensor*>& parts, bool mean, Device& device,
                      Lanes& lanes) {
  TROUPE_TRY(Tensor sum, parts[0]->clone(device.allocator()));
  std::int64_t n = sum.elements();
  T* out = sum.mutable_data<T>();
  lanes.parallel(std::max<std::int64_t>(1, (n + kChunk - 1) / kChunk), [&](std::int64_t c) {
    std::int64_t begin = c * kChunk, end = std::min(n, begin + kChunk);
    for (std::size_t p = 1; p < parts.size(); ++p) add_into(out, parts[p]->data<T>(), begin, end);
    if (mean) divide(out, std::int64_t(parts.size()), begin, end);
  });
  return sum;
}

Expected<Tensor> join(const std::vector<const Tensor*>& parts, bool mean, Device& device,
                      Lanes& lanes, const std::string& node) {
  switch (parts[0]->dtype()) {
    case DType::f32:
      return join<float>(parts, mean, device, lanes);
    case DType::f64:
      return join<double>(parts, mean, device, lanes);
    case DType::i32:
      return join<std::int32_t>(parts, mean, device, lanes);
    case DType::i64:
      return join<std::int64_t>(parts, mean, device, lanes);
    default:
      return unimplemented(fmt::format("{}: contributions of replicas cannot be joined for {}",
                                       node, dtype_name(parts[0]->dtype())));
  }
}

Expected<std::vector<Tensor>> operands_of(const VariableStore::Reduction& reduction, Device& device,
                                          Lanes& lanes) {
  const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
  std::vector<Tensor> operands = reduction.contributions.front();
  if (reduction.contributions.size() == 1 || rule.combine == Combine::first) return operands;
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!rule.reduced[o]) continue;
    std::vector<const Tensor*> parts;
    for (const auto& c : reduction.contributions) parts.push_back(&c[o]);
    TROUPE_TRY(operands[o], join(parts, rule.combine == Combine::mean, device, lanes, rule.node));
  }
  return operands;
}

Status apply(const VariableStore::Reduction& reduction, std::vector<Tensor>& values,
             const std::vector<bool>& may_overwrite, Device& device, Lanes& lanes) {
  const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
  TROUPE_TRY(std::vector<Tensor> operands, operands_of(reduction, device, lanes));
  std::size_t targets = reduction.targets.size(), inputs = targets + operands.size();
  std::vector<Slot> slots(inputs + targets);
  std::vector<std::uint32_t> readers(slots.size(), 2), order(inputs);
  for (std::size_t i = 0; i < inputs; ++i) order[i] = std::uint32_t(i);
  for (std::size_t t = 0; t < targets; ++t) {
    std::uint32_t at = reduction.targets[t];
    slots[t].tensor = std::move(values[at]);
    if (may_overwrite[at]) readers[t] = 1;
  }
  for (std::size_t o = 0; o < operands.size(); ++o)
    slots[targets + o].tensor = std::move(operands[o]);
  KernelContext::Setup setup;
  setup.slots = slots.data();
  setup.input_slots = order.data();
  setup.readers = readers.data();
  setup.outputs = slots.data() + inputs;
  setup.inputs = std::uint16_t(inputs);
  setup.n_outputs = std::uint16_t(targets);
  setup.device = &device;
  setup.lanes = &lanes;
  KernelContext context(setup);
  TROUPE_TRY(rule.kernel->compute(context));
  for (std::size_t t = 0; t < targets; ++t)
    values[reduction.targets[t]] = std::move(slots[inputs + t].tensor);
  return ok_status();
}

// Kernels read every variable and operand as what the op's definition says they are.
Status check_types(const LoggedWrite& write, std::span<const VariableMeta> targets) {
  const auto& rule = static_cast<const RuleWithKernel&>(*write.rule);
  auto check = [&](std::size_t input, DType is, std::string_view variable) -> Status {
    const ArgSpec& arg = rule.op_info->in[input];
    const DType wanted = rule.op_info->held_by(arg, rule.attrs);
    if (is == wanted) return ok_status();
    return invalid_argument(
        fmt::format("node '{}': the {} of {} must be {}, not {}{}", rule.node, arg.name, rule.op,
                    dtype_name(wanted), dtype_name(is),
                    variable.empty() ? "" : fmt::format(" (variable {})", variable)));
  };
  for (std::size_t i = 0; i < targets.size(); ++i)
    TROUPE_TRY(check(i, targets[i].dtype, targets[i].name));
  for (std::size_t o = 0; o < write.operands.size(); ++o)
    TROUPE_TRY(check(targets.size() + o, write.operands[o].dtype(), {}));
  return ok_status();
}

}  // namespace

Expected<std::shared_ptr<const UpdateRule>> make_rule(const OpTable& ops, const NodeDef& node,
                                                      std::vector<std::string> targets,
                                                      const Device& device) {
  TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.op));
  auto rule = std::make_shared<RuleWithKernel>();
  rule->op = node.op;
  rule->node = node.name;
  rule->attrs = node.attrs;
  rule->combine = op->def.combine;
  if (auto it = node.attrs.find("replicas"); it != node.attrs.end())
    rule->replicas = std::uint32_t(std::max<std::int64_t>(1, *it->second.get<std::int64_t>()));
  if (rule->replicas > 1 && device.space() != MemorySpace::host)
    return unimplemented(
        fmt::format("node '{}': replicas cannot share variables in device memory", node.name));
  rule->op_info = op;
  for (std::size_t i = targets.size(); i < op->in.size(); ++i)
    rule->reduced.push_back(
        std::count(op->def.reduce.begin(), op->def.reduce.end(), op->in[i].name) > 0);
  rule->targets = std::move(targets);
  TROUPE_TRY(auto kernel, ops.kernels.make(node, *op, *device.name().type));
  rule->kernel = std::move(kernel);
  return std::shared_ptr<const UpdateRule>(std::move(rule));
}

Status OpRules::check(const LoggedWrite& write, std::span<VariableMeta> targets) const {
  const auto& rule = static_cast<const RuleWithKernel&>(*write.rule);
  bool assigns = rule.op == "Assign";
  std::vector<InferenceContext::Input> inputs;
  for (const VariableMeta& target : targets) {
    if (!assigns && !target.initialised)
      return failed_precondition(
          fmt::format("Attempting to use uninitialized value {}", target.name));
    inputs.push_back({DType::resource,
                      target.initialised ? PartialShape(target.shape) : target.declared, nullptr});
  }
  for (const Tensor& operand : write.operands)
    inputs.push_back({operand.dtype(), operand.shape(), nullptr});
  if (inputs.size() != rule.op_info->in.size())
    return internal_error(fmt::format("node '{}': {} takes {} inputs, not {}", rule.node, rule.op,
                                      rule.op_info->in.size(), inputs.size()));
  TROUPE_TRY(check_types(write, targets));
  const VariableMeta& first = targets.front();
  if (assigns) {
    const Tensor& value = write.operands.front();
    if (value.dtype() != first.dtype || !first.declared.accepts(value.shape()))
      return invalid_argument(fmt::format("node '{}': variable {} is {}{}, not {}{}", rule.node,
                                          first.name, dtype_name(first.dtype),
                                          first.declared.text(), dtype_name(value.dtype()),
                                          value.shape().text()));
    targets.front().initialised = true;
    targets.front().shape = value.shape();
  } else {
    for (std::size_t o = 0; o < write.operands.size(); ++o)
      if (rule.reduced[o] && write.operands[o].shape() != first.shape)
        return invalid_argument(
            fmt::format("node '{}': the {} of variable {} must be {}{}, not {}{}", rule.node,
                        rule.op_info->in[targets.size() + o].name, first.name,
                        dtype_name(first.dtype), first.shape.text(),
                        dtype_name(write.operands[o].dtype()), write.operands[o].shape().text()));
  }
  InferenceContext context(*rule.op_info, rule.attrs, inputs, 0);
  return rule.op_info->def.shape(context).in("in node '" + rule.node + "'");
}

Expected<std::vector<Tensor>> apply_task(VariableStore::Task task, Device& device, Lanes& lanes) {
  std::vector<Tensor> values;
  std::vector<bool> may_overwrite;
  for (auto& v : task.variables) {
    may_overwrite.push_back(v.in_place);
    values.push_back(std::move(v.value));
  }
  for (const auto& reduction : task.reductions) {
    TROUPE_TRY(apply(reduction, values, may_overwrite, device, lanes));
    // What a rule made belongs to this task alone.
    for (std::uint32_t t : reduction.targets) may_overwrite[t] = true;
  }
  return values;
}

}  // namespace troupe
