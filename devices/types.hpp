// The kinds of device that a process can make.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.hpp"

namespace troupe {

// What a job says of the devices it wants made. Each type takes what it needs.
struct DeviceSettings {
  int threads = 0;         // compute threads; 0: one per processor this process may use
  std::uint64_t seed = 0;  // of whatever a device draws at random
  std::size_t memory = 0;  // bytes of a device that has memory of its own; 0: what it has
};

// All that is told of a kind of device. A new one is such a record and a folder beside cpu/.
struct DeviceType {
  std::string name;                       // upper case, "TYPE" of /job:worker/task:0/device:TYPE:0
  MemorySpace space = MemorySpace::host;  // Device::space() of all of them
  // Of the types that have a kernel for a node, placement takes the one of the lowest rank.
  int rank = 3;
  // Its devices run the kernels of this type, too, where they have none of their own: for devices
  // whose memory is the host's. Empty: none.
  std::string kernels_of;
  Expected<std::unique_ptr<Device>> (*make)(const DeviceName& name,
                                            const DeviceSettings& settings) = nullptr;
};

// Filled before the first use, then read only: part of OpTable (ops/op.hpp).
class DeviceTypes {
 public:
  // already_exists; invalid_argument for a name that no device can have, or no `make`.
  Status add(DeviceType type);
  // Null when there is none of that name.
  const DeviceType* find(std::string_view name) const;
  // not_found lists the types there are; what `make` says is told with the name.
  Expected<std::unique_ptr<Device>> make(const DeviceName& name,
                                         const DeviceSettings& settings) const;
  const std::vector<DeviceType>& all() const { return types_; }  // in the order of their adding

 private:
  std::vector<DeviceType> types_;
};

// The types of this library: CPU and FAKE.
DeviceTypes builtin_device_types();

}  // namespace troupe
