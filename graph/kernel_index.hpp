// Which ops have kernels where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/dtype.hpp"
#include "core/text_map.hpp"

namespace troupe {

// Which ops have kernels on which device types, for which dtypes, and which types come first. A
// table, so that this floor needs neither kernels nor devices.
class KernelIndex {
 public:
  void add(std::string op, std::string device_type, std::vector<DType> types);
  // Placement takes devices of a lower rank first. A type that nothing is said of comes last.
  void rank(std::string device_type, int rank) { ranks_[std::move(device_type)] = rank; }
  int rank(std::string_view device_type) const;
  bool has(std::string_view op, std::string_view device_type, DType type) const;
  std::vector<std::string> devices_of(std::string_view op) const;
  // What `has` says of each type, a bit of its number each.
  std::uint64_t types_of(std::string_view op, std::string_view device_type) const;

 private:
  // Their dtypes by device type. An empty list means any.
  using Kernels = std::map<std::string, std::vector<DType>, std::less<>>;
  const std::vector<DType>* find(std::string_view op, std::string_view device_type) const;

  TextMap<Kernels> table_;  // by op
  std::map<std::string, int, std::less<>> ranks_;
};

}  // namespace troupe
