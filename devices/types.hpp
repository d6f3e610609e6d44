// The device types that a process can make.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "devices/device.hpp"

namespace troupe {

// A job's settings for its devices. Each type uses what it needs.
struct DeviceSettings {
  int threads = 0;         // compute threads; 0: one per processor this process may use
  std::uint64_t seed = 0;  // for random behaviour of a device
  std::size_t memory = 0;  // bytes of a device with its own memory; 0: all it has
  // Whether the host waits for each kernel and copy of a GPU, so that one that fails is known.
  bool synchronous = false;
};

// The description of a device type. A new type is such a record and a folder next to cpu/.
struct DeviceType {
  std::string name;                       // upper case, "TYPE" of /job:worker/task:0/device:TYPE:0
  MemorySpace space = MemorySpace::host;  // Device::space() of all of them
  // Of the types with a kernel for a node, placement prefers the lowest rank.
  int rank = 3;
  // Its devices use kernels of this type for ops without their own; for devices whose memory is the
  // host's. Empty: none.
  std::string kernels_of;
  Expected<std::unique_ptr<Device>> (*make)(const DeviceName& name,
                                            const DeviceSettings& settings) = nullptr;
};

// Part of OpTable (ops/op.hpp). Filled before its first use, then read-only.
class DeviceTypes {
 public:
  // already_exists; invalid_argument for a name that no device can have, or no `make`.
  Status add(DeviceType type);
  // Null if there is none with that name.
  const DeviceType* find(std::string_view name) const;
  // not_found lists the known types; errors of `make` name the device.
  Expected<std::unique_ptr<Device>> make(const DeviceName& name,
                                         const DeviceSettings& settings) const;
  const std::vector<DeviceType>& all() const { return types_; }  // in the order of their adding

 private:
  std::vector<DeviceType> types_;
};

// The types of this library: CPU and FAKE.
DeviceTypes builtin_device_types();

}  // namespace troupe
