// The table of device types.
#include <doctest/doctest.h>

#include "devices/cpu/cpu_device.hpp"
#include "devices/types.hpp"

namespace troupe {
namespace {

DeviceName named(const char* type) { return {"worker", 0, type, 0}; }

Expected<std::unique_ptr<Device>> make_host(const DeviceName& name, const DeviceSettings&) {
  return make_inline_device(name);
}
Expected<std::unique_ptr<Device>> make_broken(const DeviceName&, const DeviceSettings&) {
  return unavailable("its driver is missing");
}

}  // namespace

TEST_CASE("the types of the library make devices where the type says they are") {
  DeviceTypes types = builtin_device_types();
  for (const DeviceType& type : types.all()) {
    if (type.name == "CUDA") continue;  // where there is a driver: cuda/cuda_device_test.cpp
    auto device = types.make(named(type.name.c_str()), {.threads = 1});
    REQUIRE(device.ok());
    CHECK((*device)->space() == type.space);
    CHECK((*device)->name() == named(type.name.c_str()));
  }
  CHECK(types.find("CPU")->rank < types.find("FAKE")->rank);
}

TEST_CASE("a type of a program's own stands beside them, under a name of its own") {
  DeviceTypes types = builtin_device_types();
  REQUIRE(types.add({.name = "NPU", .make = make_host}).ok());
  CHECK(types.make(named("NPU"), {}).ok());
  CHECK(types.add({.name = "NPU", .make = make_host}).code() == Code::already_exists);
  CHECK(types.add({.name = "CPU", .make = make_host}).code() == Code::already_exists);
  for (const char* name : {"", "npu", "N-PU", "3D", "*", "GPU"})  // GPU means CUDA
    CHECK_MESSAGE(types.add({.name = name, .make = make_host}).code() == Code::invalid_argument,
                  name);
  CHECK(types.add({.name = "TPU"}).code() == Code::invalid_argument);
}

TEST_CASE("a device that cannot be made says which and why") {
  DeviceTypes types = builtin_device_types();
  Status unknown = types.make(named("NPU"), {}).status();
  CHECK(unknown.code() == Code::not_found);
  CHECK(unknown.message() == "there is no device type 'NPU'; known are CPU, CUDA, FAKE");
  REQUIRE(types.add({.name = "NPU", .make = make_broken}).ok());
  Status broken = types.make(named("NPU"), {}).status();
  CHECK(broken.code() == Code::unavailable);
  CHECK(broken.text().find("/job:worker/task:0/device:NPU:0") != std::string::npos);
  // A type that lies about its memory would have its tensors read where they are not.
  REQUIRE(types.add({.name = "LIAR", .space = MemorySpace::device, .make = make_host}).ok());
  CHECK(types.make(named("LIAR"), {}).status().code() == Code::internal);
}

}  // namespace troupe
