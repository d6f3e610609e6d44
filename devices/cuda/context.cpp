#include "devices/cuda/context.hpp"

namespace troupe::cuda {

Expected<ContextPtr> Context::make(Driver driver, int ordinal) {
  if (ordinal < 0 || ordinal >= driver.devices)
    return out_of_range("there is no GPU " + std::to_string(ordinal) + ": the driver has " +
                        std::to_string(driver.devices));
  DeviceId id = 0;
  TROUPE_TRY(driver.check(driver.cuDeviceGet(&id, ordinal), "cuDeviceGet"));
  TROUPE_TRY(GpuInfo gpu, gpu_info(driver, id));
  ContextHandle handle = nullptr;
  TROUPE_TRY(
      driver.check(driver.cuDevicePrimaryCtxRetain(&handle, id), "cuDevicePrimaryCtxRetain"));
  return ContextPtr(new Context(std::move(driver), id, handle, std::move(gpu)));
}

Context::~Context() { driver_.cuDevicePrimaryCtxRelease_v2(id_); }

}  // namespace troupe::cuda
