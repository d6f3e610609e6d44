#include "devices/types.hpp"

#include <fmt/format.h>

#include "devices/cpu/cpu_device.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/fake/fake_device.hpp"

namespace troupe {
namespace {

Expected<std::unique_ptr<Device>> make_cpu(const DeviceName& name, const DeviceSettings& settings) {
  CpuOptions options;
  options.threads = settings.threads;
  return make_cpu_device(name, std::move(options));
}

Expected<std::unique_ptr<Device>> make_fake(const DeviceName& name,
                                            const DeviceSettings& settings) {
  FakeOptions options;
  options.seed = settings.seed;
  if (settings.memory > 0) options.memory = settings.memory;
  return std::unique_ptr<Device>(make_fake_device(name, options));
}

// Opens the driver: where there is none, nothing but the making of a device fails.
Expected<std::unique_ptr<Device>> make_cuda(const DeviceName& name,
                                            const DeviceSettings& settings) {
  CudaOptions options;
  options.ordinal = *name.index;
  options.memory = settings.memory;
  if (settings.synchronous) options.synchronous = true;
  TROUPE_TRY(auto device, make_cuda_device(name, std::move(options)));
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace

Status DeviceTypes::add(DeviceType type) {
  auto name = DeviceName::parse("/device:" + type.name + ":0");
  if (!name.ok()) return name.status();
  if (name->type != type.name)
    return invalid_argument(fmt::format("device type '{}': a device of it would be of type '{}'",
                                        type.name, name->type.value_or("*")));
  if (type.make == nullptr)
    return invalid_argument(fmt::format("device type '{}' makes no devices", type.name));
  if (find(type.name) != nullptr)
    return already_exists(fmt::format("there is a device type '{}' already", type.name));
  types_.push_back(std::move(type));
  return ok_status();
}

const DeviceType* DeviceTypes::find(std::string_view name) const {
  for (const DeviceType& type : types_)
    if (type.name == name) return &type;
  return nullptr;
}

Expected<std::unique_ptr<Device>> DeviceTypes::make(const DeviceName& name,
                                                    const DeviceSettings& settings) const {
  const DeviceType* type = find(name.type.value_or(""));
  if (type == nullptr) {
    std::string known;
    for (const DeviceType& t : types_) known += (known.empty() ? "" : ", ") + t.name;
    return not_found(
        fmt::format("there is no device type '{}'; known are {}", name.type.value_or(""), known));
  }
  auto device = type->make(name, settings);
  if (!device.ok()) return device.status().in("while " + name.text() + " was made");
  if ((*device)->space() != type->space)
    return internal_error(
        fmt::format("{} is not in the memory space that its type says", name.text()));
  return device;
}

DeviceTypes builtin_device_types() {
  DeviceTypes types;
  for (DeviceType type :
       {DeviceType{.name = "CPU", .space = MemorySpace::host, .rank = 1, .make = make_cpu},
        DeviceType{.name = "CUDA", .space = MemorySpace::device, .rank = 0, .make = make_cuda},
        DeviceType{.name = "FAKE", .space = MemorySpace::device, .rank = 2, .make = make_fake}}) {
    Status added = types.add(std::move(type));
    TROUPE_CHECK(added.ok(), added.text());
  }
  return types;
}

}  // namespace troupe
