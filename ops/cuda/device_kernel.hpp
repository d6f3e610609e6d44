// The base of this library's kernels of GPUs.
#pragma once

#include "devices/cuda/gpu_kernel.hpp"
#include "ops/cuda/device_code.hpp"

namespace troupe::cuda {

class DeviceKernel : public GpuKernel {
 public:
  const DeviceCode& code() const override { return device_code(); }
};

}  // namespace troupe::cuda
