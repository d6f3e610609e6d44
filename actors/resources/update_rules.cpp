#include "actors/resources/update_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "actors/resources/variable_reads.hpp"
#include "devices/kernel_call.hpp"
#include "devices/named_work.hpp"
#include "devices/out_of_memory.hpp"
#include "graph/import.hpp"
#include "graph/node_query.hpp"

namespace troupe {
namespace {

constexpr std::int64_t kChunk = 32 * 1024;  // elements; a function of the shape alone

// Whether the result is the operand itself: needs no old value and no memory.
bool assigns(const UpdateRule& rule) { return rule.op == "Assign"; }

template <class T>
void add_into(T* sum, const T* other, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum[i] = T(sum[i] + other[i]);
}
template <class T>
void divide(T* sum, std::int64_t n, std::int64_t begin, std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) sum[i] = T(sum[i] / T(n));
}

void copy_into(Tensor& to, const Tensor& from) {
  if (from.bytes() != 0) std::memcpy(to.mutable_raw(), from.raw(), from.bytes());
}

// Sum or mean in replica order, in the memory of `first` if nobody else holds it, else in `room`.
template <class T>
Expected<Tensor> join(Tensor first, const std::vector<Tensor>& others, bool mean, Tensor room,
                      Device& device, Lanes& lanes) {
  Tensor sum = std::move(first);
  if (!sum.unique()) {
    if (!room.defined()) {
      TROUPE_TRY(room, Tensor::make(sum.dtype(), sum.shape(), device.allocator()));
    }
    copy_into(room, sum);
    sum = std::move(room);
  }
  const auto n = std::int64_t(sum.bytes() / sizeof(T));  // two of each complex number
  T* out = static_cast<T*>(sum.mutable_raw());
  lanes.parallel(std::max<std::int64_t>(1, (n + kChunk - 1) / kChunk), [&](std::int64_t c) {
    std::int64_t begin = c * kChunk, end = std::min(n, begin + kChunk);
    for (const Tensor& other : others)
      add_into(out, static_cast<const T*>(other.raw()), begin, end);
    if (mean) divide(out, std::int64_t(others.size() + 1), begin, end);
  });
  return sum;
}

Expected<Tensor> join(Tensor first, const std::vector<Tensor>& others, bool mean, Tensor room,
                      Device& device, Lanes& lanes, const std::string& node) {
  switch (first.dtype()) {
    case DType::f32:
    case DType::c64:
      return join<float>(std::move(first), others, mean, std::move(room), device, lanes);
    case DType::f64:
    case DType::c128:
      return join<double>(std::move(first), others, mean, std::move(room), device, lanes);
    case DType::i32:
      return join<std::int32_t>(std::move(first), others, mean, std::move(room), device, lanes);
    case DType::i64:
      return join<std::int64_t>(std::move(first), others, mean, std::move(room), device, lanes);
    default:
      return unimplemented(fmt::format("{}: contributions of replicas cannot be joined for {}",
                                       node, dtype_name(first.dtype())));
  }
}

bool joins_rows(const WriteReduction& reduction) {
  return reduction.contributions.size() > 1 && reduction.rule->combine == Combine::rows;
}

// The shape of operand `o` of all contributions, concatenated.
Expected<Shape> shape_of_rows(const WriteReduction& reduction, std::size_t o) {
  const auto first = reduction.contributions.front()[o].shape().dims();
  std::vector<std::int64_t> dims(first.begin(), first.end());
  for (std::size_t c = 1; c < reduction.contributions.size(); ++c)
    dims[0] += reduction.contributions[c][o].dim(0);
  return Shape::make(dims);
}

// Where a tensor like that one is made: indices of rows are in host memory.
Allocator& memory_of(const Tensor& like, Device& device) {
  return like.space() == device.space() ? device.allocator() : device.host_allocator();
}

std::vector<Tensor> parts_of(std::vector<std::vector<Tensor>>& contributions, std::size_t o) {
  std::vector<Tensor> parts;
  for (std::vector<Tensor>& each : contributions) parts.push_back(std::move(each[o]));
  return parts;
}

// Tensors of the host, one below the other.
Tensor rows_on_host(std::vector<std::vector<Tensor>>& contributions, std::size_t o, Tensor all) {
  auto* to = static_cast<std::byte*>(all.bytes() != 0 ? all.mutable_raw() : nullptr);
  for (std::vector<Tensor>& each : contributions) {
    if (each[o].bytes() != 0) std::memcpy(to, each[o].raw(), each[o].bytes());
    to += each[o].bytes();
    each[o] = Tensor();
  }
  const auto n = std::int64_t(contributions.size());
  const auto mean = [&]<class T>(T) {
    divide(static_cast<T*>(all.mutable_raw()), n, 0, std::int64_t(all.bytes() / sizeof(T)));
  };
  if (all.dtype() == DType::f32 || all.dtype() == DType::c64) mean(float());
  if (all.dtype() == DType::f64 || all.dtype() == DType::c128) mean(double());
  return all;
}

// One operand list: the contributions concatenated in replica order.
Expected<std::vector<Tensor>> operands_of_rows(WriteReduction& reduction, Device& device,
                                               Lanes& lanes) {
  const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
  std::vector<Tensor> operands = reduction.contributions.front();
  reduction.joined.resize(operands.size());
  for (std::size_t o = 0; o < operands.size(); ++o) {
    if (!rule.reduced[o]) continue;
    Tensor room = std::move(reduction.joined[o]);
    if (rule.join && operands[o].space() == device.space()) {
      room = operands[o] = Tensor();
      TROUPE_TRY(operands[o], rule.join->rows(parts_of(reduction.contributions, o), lanes));
      continue;
    }
    if (!room.defined()) {
      TROUPE_TRY(const Shape shape, shape_of_rows(reduction, o));
      TROUPE_TRY(room, Tensor::make(operands[o].dtype(), shape, memory_of(operands[o], device)));
    }
    operands[o] = rows_on_host(reduction.contributions, o, std::move(room));
  }
  return operands;
}

bool joins(const WriteReduction& reduction) {
  return reduction.contributions.size() > 1 && joins_operands(reduction.rule->combine);
}

// Consumes the contributions.
Expected<std::vector<Tensor>> operands_of(WriteReduction& reduction, Device& device, Lanes& lanes) {
  const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
  std::vector<Tensor> operands = std::move(reduction.contributions.front());
  if (!joins(reduction)) return operands;
  reduction.joined.resize(operands.size());
  for (std::size_t o = 0; o < operands.size(); ++o) {
    std::vector<Tensor> others;
    for (std::size_t c = 1; c < reduction.contributions.size(); ++c)
      others.push_back(std::move(reduction.contributions[c][o]));
    if (!rule.reduced[o]) continue;
    const bool mean = rule.combine == Combine::mean;
    if (rule.join) {
      reduction.joined[o] = Tensor();  // room for the result
      others.insert(others.begin(), std::move(operands[o]));
      TROUPE_TRY(operands[o], mean ? rule.join->mean(std::move(others), lanes)
                                   : rule.join->sum(std::move(others), lanes));
      continue;
    }
    TROUPE_TRY(operands[o], join(std::move(operands[o]), others, mean,
                                 std::move(reduction.joined[o]), device, lanes, rule.node));
  }
  return operands;
}

// The operands of each application of the rule.
Expected<std::vector<std::vector<Tensor>>> applications_of(WriteReduction& reduction,
                                                           Device& device, Lanes& lanes) {
  if (reduction.rule->combine == Combine::each) return std::move(reduction.contributions);
  TROUPE_TRY(std::vector<Tensor> operands, joins_rows(reduction)
                                               ? operands_of_rows(reduction, device, lanes)
                                               : operands_of(reduction, device, lanes));
  return std::vector<std::vector<Tensor>>{std::move(operands)};
}

// Copies a value that others may still read into its reserved memory before the update changes it.
// Without reserved memory the kernel makes a copy; in device memory the room is freed for that.
void make_own(Tensor& value, bool& may_overwrite, Tensor& room) {
  Tensor copy = std::move(room);
  room = Tensor();
  if (!copy.defined() || !value.defined() || (may_overwrite && value.unique())) return;
  if (copy.space() != MemorySpace::host || copy.shape() != value.shape()) return;
  copy_into(copy, value);
  value = std::move(copy);
  may_overwrite = true;
}

Status apply(const WriteReduction& reduction, std::vector<Tensor> operands,
             std::vector<Tensor>& values, std::vector<bool>& may_overwrite,
             std::vector<Tensor>& room, Device& device, Lanes& lanes) {
  const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
  if (!assigns(rule))
    for (std::uint32_t t : reduction.targets) {
      bool own = may_overwrite[t];
      make_own(values[t], own, room[t]);
      may_overwrite[t] = own;
    }
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
  const KernelPlace place{.device = &device, .lanes = &lanes};
  setup.place = &place;
  KernelContext context(setup);
  if (Status status = call_kernel(*rule.kernel, context); !status.ok())
    return status.in("in node '" + rule.node + "'");
  for (std::size_t t = 0; t < targets; ++t)
    values[reduction.targets[t]] = std::move(slots[inputs + t].tensor);
  return ok_status();
}

// Checks dtypes: kernels read every variable and operand as the op defines them.
Status check_types(const LoggedWrite& write, std::span<const VariableMeta> targets) {
  const auto& rule = static_cast<const RuleWithKernel&>(*write.rule);
  auto check = [&](std::size_t input, DType is, std::string_view variable) -> Status {
    const ArgSpec& arg = rule.op_info->in[input];
    const bool fixed = arg.kind == ArgSpec::Kind::fixed && arg.dtype != DType::resource;
    const auto own = rule.attrs.find(arg.type_attr);  // of an operand
    const bool has_own = arg.kind == ArgSpec::Kind::attr && own != rule.attrs.end();
    const DType wanted = fixed     ? arg.dtype
                         : has_own ? *own->second.get<DType>()
                                   : rule.op_info->held_by(arg, rule.attrs);
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

// Memory for what the reductions join, which they keep, and for new values of variables. What they
// have from an earlier call is not reserved again.
Expected<std::vector<Tensor>> room_for(std::span<const VariableMeta> variables,
                                       std::vector<WriteReduction>& reductions, Device& device) {
  std::set<std::uint32_t> updated;
  for (WriteReduction& reduction : reductions) {
    const NamedWork work(reduction.rule->node);
    if (!assigns(*reduction.rule))
      updated.insert(reduction.targets.begin(), reduction.targets.end());
    const auto& rule = static_cast<const RuleWithKernel&>(*reduction.rule);
    const bool rows = joins_rows(reduction);
    if (!rows && !joins(reduction)) continue;
    reduction.joined.resize(rule.reduced.size());
    for (std::size_t o = 0; o < rule.reduced.size(); ++o) {
      const Tensor& first = reduction.contributions.front()[o];
      Tensor& room = reduction.joined[o];
      if (!rule.reduced[o] || room.defined()) continue;
      if (rows) {
        TROUPE_TRY(const Shape shape, shape_of_rows(reduction, o));
        TROUPE_TRY(room, Tensor::make(first.dtype(), shape, memory_of(first, device)));
      } else if (!first.unique()) {  // else joined in place
        TROUPE_TRY(room, Tensor::make(first.dtype(), first.shape(), device.allocator()));
      }
    }
  }
  std::vector<Tensor> room(variables.size());
  for (std::uint32_t v : updated)
    if (v < variables.size() && !variables[v].in_place && variables[v].dtype != DType::string) {
      const NamedWork work(variables[v].name);
      TROUPE_TRY(room[v], Tensor::make(variables[v].dtype, variables[v].shape, device.allocator()));
    }
  return room;
}

}  // namespace

Expected<std::shared_ptr<const UpdateRule>> make_rule(const OpTable& ops, const NodeDef& node,
                                                      std::vector<std::string> targets,
                                                      Device& device) {
  TROUPE_TRY(const OpInfo* op, ops.ops.lookup(node.op));
  auto rule = std::make_shared<RuleWithKernel>();
  rule->op = node.op;
  rule->node = node.name;
  for (const auto& [name, value] : node.attrs)
    if (op->attr(name)) rule->attrs.emplace(name, value);  // others are used only in compiling
  rule->combine = op->def.combine;
  if (auto it = node.attrs.find("replicas"); it != node.attrs.end())
    rule->replicas = std::uint32_t(std::max<std::int64_t>(1, *it->second.get<std::int64_t>()));
  rule->some_replicas = node.attrs.contains(kSomeReplicasAttr);
  if (node.attrs.contains(kCombineFirstAttr)) rule->combine = Combine::first;
  const bool joined = joins_operands(rule->combine) || rule->combine == Combine::rows;
  if (rule->replicas > 1 && joined && device.space() != MemorySpace::host) {
    const auto type = node.attrs.find("T");
    if (type == node.attrs.end())
      return invalid_argument(fmt::format("node '{}' does not say its T", node.name));
    const DType dtype = *type->second.get<DType>();
    const bool divides =
        rule->combine == Combine::mean || (rule->combine == Combine::rows && is_trainable(dtype));
    TROUPE_TRY(rule->join, DeviceJoin::make(ops, dtype, rule->replicas, divides, device));
  }
  rule->op_info = op;
  for (std::size_t i = targets.size(); i < op->in.size(); ++i)
    rule->reduced.push_back(
        std::count(op->def.reduce.begin(), op->def.reduce.end(), op->in[i].name) > 0);
  rule->targets = std::move(targets);
  TROUPE_TRY(auto kernel, ops.kernels.make(node, *op, *device.name().type));
  Kernel* const one = kernel.get();
  TROUPE_TRY(device.prepare({&one, 1}).in("in node '" + node.name + "'"));
  rule->kernel = std::move(kernel);
  rule->hash = rule_hash(*rule);
  return std::shared_ptr<const UpdateRule>(std::move(rule));
}

// The value is not trusted. Checked like an imported graph: the write node, its targets and inputs.
Expected<std::shared_ptr<const UpdateRule>> OpRules::make(const UpdateRule& value) const {
  TROUPE_TRY(const OpInfo* op, ops_.ops.lookup(value.op));
  if (!op->is(External::Order::write) || op->def.external.resource != "variable")
    return invalid_argument(fmt::format("{} writes no variable", value.op));
  for (const AttrSpec& spec : op->attrs) {
    auto at = value.attrs.find(spec.name);
    if (spec.kind == "type" && (at == value.attrs.end() || !at->second.get<DType>()))
      return invalid_argument(fmt::format("node '{}' does not say its {}", value.node, spec.name));
  }
  std::vector<NodeDef> nodes;
  NodeDef write{.name = "write", .op = value.op, .attrs = value.attrs};
  std::size_t handles = 0;
  for (const ArgSpec& arg : op->in) {
    const bool handle = arg.dtype == DType::resource;
    DType type = arg.dtype;
    if (handle) type = op->held_by(arg, value.attrs);
    if (arg.kind == ArgSpec::Kind::attr) type = *value.attrs.at(arg.type_attr).get<DType>();
    handles += handle;
    write.inputs.push_back({NodeId(nodes.size()), 0});
    nodes.push_back({.name = fmt::format("input{}", nodes.size()),
                     .op = handle ? "Variable" : "Placeholder",
                     .attrs = {{"T", Attr(type)}, {"shape", Attr(PartialShape::unknown())}}});
  }
  if (handles != value.targets.size())
    return invalid_argument(fmt::format("node '{}': {} changes {} variables, not {}", value.node,
                                        value.op, handles, value.targets.size()));
  nodes.push_back(std::move(write));
  GraphImport checked(ops_.ops);
  TROUPE_TRY(checked.extend(std::move(nodes)).in("in node '" + value.node + "'"));
  NodeDef node = checked.graph().nodes.back();
  node.name = value.node;
  if (value.replicas > 1) node.attrs.emplace("replicas", Attr(std::int64_t(value.replicas)));
  if (value.some_replicas) node.attrs.emplace(std::string(kSomeReplicasAttr), Attr(true));
  if (value.combine == Combine::first && op->def.combine != Combine::first)
    node.attrs.emplace(std::string(kCombineFirstAttr), Attr(true));
  return make_rule(ops_, node, value.targets, device_);
}

Status OpRules::check(const LoggedWrite& write, std::span<VariableMeta> targets) const {
  const auto& rule = static_cast<const RuleWithKernel&>(*write.rule);
  std::vector<InferenceContext::Input> inputs;
  for (const VariableMeta& target : targets) {
    if (!assigns(rule) && !target.initialised) return uninitialised(target.name);
    inputs.push_back(
        {DType::resource, target.initialised ? PartialShape(target.shape) : target.declared});
  }
  for (const Tensor& operand : write.operands)
    inputs.push_back({operand.dtype(), operand.shape(),
                      operand.space() == MemorySpace::host ? &operand : nullptr});
  if (inputs.size() != rule.op_info->in.size())
    return internal_error(fmt::format("node '{}': {} takes {} inputs, not {}", rule.node, rule.op,
                                      rule.op_info->in.size(), inputs.size()));
  TROUPE_TRY(check_types(write, targets));
  const VariableMeta& first = targets.front();
  if (assigns(rule)) {
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
      if (rule.reduced[o] && rule.combine != Combine::each && rule.combine != Combine::rows &&
          write.operands[o].shape() != first.shape)
        return invalid_argument(
            fmt::format("node '{}': the {} of variable {} must be {}{}, not {}{}", rule.node,
                        rule.op_info->in[targets.size() + o].name, first.name,
                        dtype_name(first.dtype), first.shape.text(),
                        dtype_name(write.operands[o].dtype()), write.operands[o].shape().text()));
  }
  InferenceContext context(*rule.op_info, rule.attrs, inputs, 0);
  return rule.op_info->def.shape(context).in("in node '" + rule.node + "'");
}

Expected<std::vector<Tensor>> OpRules::reserve(std::span<const VariableMeta> variables,
                                               std::vector<WriteReduction>& reductions) const {
  auto room = room_for(variables, reductions, device_);
  if (!room.ok()) return tell_holders(room.status(), device_);
  return room;
}

Expected<std::vector<Tensor>> join_contributions(VariableStore::Join join, Device& device,
                                                 Lanes& lanes) {
  std::vector<Tensor> all;
  for (WriteReduction& write : join.writes) {
    const NamedWork work(write.rule->node);
    TROUPE_TRY(std::vector<Tensor> operands, operands_of(write, device, lanes));
    all.insert(all.end(), std::make_move_iterator(operands.begin()),
               std::make_move_iterator(operands.end()));
    write = {};
  }
  return all;
}

Expected<std::vector<Tensor>> apply_task(VariableStore::Task task, Device& device, Lanes& lanes) {
  std::vector<Tensor> values, room;
  std::vector<bool> may_overwrite;
  for (auto& v : task.variables) {
    may_overwrite.push_back(v.in_place);
    values.push_back(std::move(v.value));
    room.push_back(std::move(v.room));
  }
  for (WriteReduction& reduction : task.reductions) {
    const NamedWork work(reduction.rule->node);
    TROUPE_TRY(auto applications, applications_of(reduction, device, lanes));
    for (std::vector<Tensor>& operands : applications) {
      TROUPE_TRY(apply(reduction, std::move(operands), values, may_overwrite, room, device, lanes));
      // A value that a rule made belongs to this task only.
      for (std::uint32_t t : reduction.targets) may_overwrite[t] = true;
    }
    reduction = {};  // frees its operands
  }
  return values;
}

}  // namespace troupe
