#include <algorithm>
#include <limits>

#include "graph/kernel_index.hpp"

namespace troupe {

void KernelIndex::add(std::string op, std::string device_type, std::vector<DType> types) {
  table_.insert_or_assign({std::move(op), std::move(device_type)}, std::move(types));
}

bool KernelIndex::has(std::string_view op, std::string_view device_type, DType type) const {
  auto at = table_.find({std::string(op), std::string(device_type)});
  if (at == table_.end()) return false;
  const std::vector<DType>& types = at->second;
  // No list means any; an op without attribute T has no type to ask for.
  return types.empty() || type == DType::invalid ||
         std::find(types.begin(), types.end(), type) != types.end();
}

std::vector<std::string> KernelIndex::devices_of(std::string_view op) const {
  std::vector<std::string> out;
  for (const auto& [key, types] : table_)
    if (key.first == op) out.push_back(key.second);
  return out;
}

int KernelIndex::rank(std::string_view device_type) const {
  auto at = ranks_.find(device_type);
  return at == ranks_.end() ? std::numeric_limits<int>::max() : at->second;
}

}  // namespace troupe
