#include "ops/op.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "graph/compile.hpp"
#include "graph/node_query.hpp"
#include "ops/cuda/host_kernel.hpp"
#include "ops/fake_kernel.hpp"
#include "ops/fake_list_kernel.hpp"
#include "ops/isa.hpp"
#include "ops/kernel_on_host.hpp"

namespace troupe {
namespace {

// An attribute that the definition declares: the builder checked its presence and kind.
template <class T>
const T& attr_of(const KernelSpec& spec, std::string_view name) {
  auto it = spec.node.attrs.find(name);
  const T* value = it == spec.node.attrs.end() ? nullptr : it->second.get<T>();
  TROUPE_CHECK(value != nullptr, fmt::format("{} '{}' has no attribute '{}' of that kind",
                                             spec.node.op, spec.node.name, name));
  return *value;
}

std::vector<DType> parse_types(std::string_view text, std::string_view op) {
  std::vector<DType> types;
  while (!text.empty()) {
    auto end = std::min(text.find(' '), text.size());
    std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    auto type = parse_dtype(word);
    TROUPE_CHECK(type.has_value(), fmt::format("kernel of {}: no dtype '{}'", op, word));
    types.push_back(*type);
  }
  return types;
}

}  // namespace

DType KernelSpec::type(std::string_view attr) const { return attr_of<DType>(*this, attr); }
std::int64_t KernelSpec::int_attr(std::string_view name) const {
  return attr_of<std::int64_t>(*this, name);
}
double KernelSpec::float_attr(std::string_view name) const { return attr_of<double>(*this, name); }
bool KernelSpec::bool_attr(std::string_view name) const { return attr_of<bool>(*this, name); }
const std::string& KernelSpec::string_attr(std::string_view name) const {
  return attr_of<std::string>(*this, name);
}
const PartialShape& KernelSpec::shape_attr(std::string_view name) const {
  return attr_of<PartialShape>(*this, name);
}
const Tensor& KernelSpec::tensor_attr(std::string_view name) const {
  return attr_of<Tensor>(*this, name);
}
const std::vector<std::int64_t>& KernelSpec::ints_attr(std::string_view name) const {
  return attr_of<std::vector<std::int64_t>>(*this, name);
}

Status KernelRegistry::add(std::string op, std::string device_type, Entry entry) {
  auto of = kernels_.try_emplace(std::move(op)).first;
  auto [it, added] = of->second.try_emplace(std::move(device_type), entry);
  if (added) return ok_status();
  if (it->second.runs == Entry::Runs::beside_gpu) {
    it->second = std::move(entry);
    return ok_status();
  }
  return already_exists(fmt::format("op {} has a kernel for {} already", of->first, it->first));
}

const KernelRegistry::Entry* KernelRegistry::find(std::string_view op,
                                                  std::string_view device_type) const {
  const auto of = kernels_.find(op);
  if (of == kernels_.end()) return nullptr;
  for (std::string_view type = device_type;;) {
    if (const auto it = of->second.find(type); it != of->second.end()) return &it->second;
    const auto other = shared_.find(type);
    if (other == shared_.end()) return nullptr;
    type = other->second;
  }
}

void KernelRegistry::share(std::string device_type, std::string other) {
  TROUPE_CHECK(device_type != other, "a device type shares the kernels of another one");
  shared_[std::move(device_type)] = std::move(other);
}

Expected<std::unique_ptr<Kernel>> KernelRegistry::make(const NodeDef& node, const OpInfo& op,
                                                       std::string_view device_type) const {
  if (on_host(node) && device_type != "CPU") {
    TROUPE_TRY(auto kernel, make(node, op, "CPU"));
    return kernel_on_host(std::move(kernel));
  }
  const Entry* entry = find(node.op, device_type);
  if (entry == nullptr) {
    std::string others;
    if (const auto of = kernels_.find(node.op); of != kernels_.end())
      for (auto& [type, unused] : of->second) others += (others.empty() ? "" : ", ") + type;
    return not_found(fmt::format("op {} has no kernel for {} ({})", node.op, device_type,
                                 others.empty() ? "nor for any device" : "it has: " + others));
  }
  if (auto t = node.attrs.find("T"); t != node.attrs.end() && !entry->types.empty())
    if (const DType* type = t->second.get<DType>())
      if (std::find(entry->types.begin(), entry->types.end(), *type) == entry->types.end())
        return unimplemented(fmt::format("the {} kernel of op {} does not take {}", device_type,
                                         node.op, dtype_name(*type)));
  ops::settle();
  KernelSpec spec{node, op};
  TROUPE_TRY(auto kernel, entry->factory(spec));
  switch (entry->runs) {
    case Entry::Runs::behind_fake:
      return fake_kernel(std::move(kernel), spec);
    case Entry::Runs::beside_gpu:
      return cuda::host_kernel(std::move(kernel), spec);
    default:
      return kernel;
  }
}

KernelIndex KernelRegistry::index() const {
  KernelIndex index;
  for (auto& [op, entries] : kernels_) {
    for (auto& [type, entry] : entries) index.add(op, type, entry.types);
    for (auto& [type, other] : shared_)
      if (const Entry* found = find(op, type)) index.add(op, type, found->types);
  }
  return index;
}

OpTable::Entry OpTable::add(const OpDef& def) {
  index_ = nullptr;
  Status added = ops.add(def);
  TROUPE_CHECK(added.ok(), fmt::format("op {}: {}", def.name, added.text()));
  return Entry(*this, *ops.find(def.name));
}

void OpTable::add_device(DeviceType type) {
  index_ = nullptr;
  if (!type.kernels_of.empty()) {
    TROUPE_CHECK(devices.find(type.kernels_of) != nullptr,
                 fmt::format("device type {} shares the kernels of {}, which is none", type.name,
                             type.kernels_of));
    kernels.share(type.name, type.kernels_of);
  }
  Status added = devices.add(std::move(type));
  TROUPE_CHECK(added.ok(), added.text());
}

void OpTable::add_pass(PassDef pass) {
  TROUPE_CHECK(pass.run != nullptr, fmt::format("pass {} does nothing", pass.name));
  std::vector<std::string> stages = stage_names();
  auto known = [&](const std::string& name) {
    return std::find(stages.begin(), stages.end(), name) != stages.end();
  };
  TROUPE_CHECK(known(pass.after),
               fmt::format("pass {} follows '{}', which is no stage", pass.name, pass.after));
  for (const PassDef& other : passes) stages.push_back(other.name);
  TROUPE_CHECK(!known(pass.name), fmt::format("there is a pass {} already", pass.name));
  passes.push_back(std::move(pass));
}

void OpTable::finish() { index_ = index(); }

std::shared_ptr<const KernelIndex> OpTable::index() const {
  if (index_ != nullptr) return index_;
  auto index = std::make_shared<KernelIndex>(kernels.index());
  for (const DeviceType& type : devices.all()) index->rank(type.name, type.rank);
  return index;
}

std::vector<DType> OpTable::Entry::types_of(std::string_view types) const {
  return parse_types(types.empty() ? op_.def.types : types, op_.def.name);
}

OpTable::Entry& OpTable::Entry::cuda(KernelFactory factory, std::string_view types) {
  if (!types.empty() || op_.def.types.empty()) return on("CUDA", factory, types);
  std::string real;
  for (DType type : parse_types(op_.def.types, op_.def.name))
    if (!is_complex(type)) real += std::string(dtype_name(type)) + " ";
  TROUPE_CHECK(!real.empty(),
               op_.def.name + " has complex types alone: say which its CUDA kernel takes");
  return on("CUDA", factory, real);
}

OpTable::Entry& OpTable::Entry::on(std::string_view device_type, KernelFactory factory,
                                   std::string_view types) {
  Status added =
      table_.kernels.add(op_.def.name, std::string(device_type), {factory, types_of(types)});
  TROUPE_CHECK(added.ok(), added.text());
  return *this;
}

OpTable::Entry& OpTable::Entry::cpu(KernelFactory factory, std::string_view types) {
  KernelRegistry::Entry entry{factory, types_of(types)};
  Status added = table_.kernels.add(op_.def.name, "CPU", entry);
  TROUPE_CHECK(added.ok(), added.text());
  // A variable is where it is, also for rules that no GPU has.
  if (op_.is(External::Order::write) && op_.def.external.resource == "variable") {
    entry.runs = KernelRegistry::Entry::Runs::beside_gpu;
    std::erase(entry.types, DType::string);
    added = table_.kernels.add(op_.def.name, "CUDA", entry);
    TROUPE_CHECK(added.ok(), added.text());
  }
  if (!runs_on_fake(op_)) return *this;
  entry.runs = KernelRegistry::Entry::Runs::behind_fake;
  // Which live in host memory only; lists do as well, with elements that need not.
  const bool lists = takes_lists(op_);
  std::erase_if(entry.types,
                [lists](DType t) { return t == DType::string || (t == DType::list && !lists); });
  added = table_.kernels.add(op_.def.name, "FAKE", std::move(entry));
  TROUPE_CHECK(added.ok(), added.text());
  return *this;
}

}  // namespace troupe
