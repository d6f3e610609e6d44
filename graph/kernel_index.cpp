#include <algorithm>
#include <limits>

#include "graph/kernel_index.hpp"

namespace troupe {

namespace {

// An op without attribute T has no type to ask for.
bool includes(const std::vector<DType>& types, DType type) {
  return types.empty() || type == DType::invalid ||
         std::find(types.begin(), types.end(), type) != types.end();
}

}  // namespace

void KernelIndex::add(std::string op, std::string device_type, std::vector<DType> types) {
  table_[std::move(op)].insert_or_assign(std::move(device_type), std::move(types));
}

const std::vector<DType>* KernelIndex::find(std::string_view op,
                                            std::string_view device_type) const {
  const auto of = table_.find(op);
  if (of == table_.end()) return nullptr;
  const auto at = of->second.find(device_type);
  return at == of->second.end() ? nullptr : &at->second;
}

bool KernelIndex::has(std::string_view op, std::string_view device_type, DType type) const {
  const std::vector<DType>* types = find(op, device_type);
  return types && includes(*types, type);
}

std::uint64_t KernelIndex::types_of(std::string_view op, std::string_view device_type) const {
  const std::vector<DType>* types = find(op, device_type);
  std::uint64_t bits = 0;
  for (int type = 0; types && type <= int(DType::list); ++type)
    bits |= std::uint64_t{includes(*types, DType(type))} << type;
  return bits;
}

std::vector<std::string> KernelIndex::devices_of(std::string_view op) const {
  std::vector<std::string> out;
  if (const auto of = table_.find(op); of != table_.end())
    for (const auto& [device_type, types] : of->second) out.push_back(device_type);
  return out;
}

int KernelIndex::rank(std::string_view device_type) const {
  auto at = ranks_.find(device_type);
  return at == ranks_.end() ? std::numeric_limits<int>::max() : at->second;
}

}  // namespace troupe
