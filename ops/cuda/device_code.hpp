// The text of the device code of this library: ops/device/ and ops/formulas/ as they stand in the
// tree, compiled in (cmake/embed_device_code.cmake).
#pragma once

#include "devices/cuda/gpu_kernel.hpp"

namespace troupe::cuda {

const DeviceCode& device_code();

}  // namespace troupe::cuda
