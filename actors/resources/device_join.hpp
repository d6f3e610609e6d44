// Joins what replicas contribute to a write where the host cannot read it: in memory of a device,
// by kernels of that device.
#pragma once

#include <memory>
#include <vector>

#include "devices/device.hpp"
#include "ops/op.hpp"

namespace troupe {

// Of tensors of one type on one device, which outlives it. Used on lanes of that device.
class DeviceJoin {
 public:
  // Prepares the device; `divides`: for mean(), and for rows() of floats. Errors: those of
  // KernelRegistry::make and Device::prepare.
  static Expected<std::shared_ptr<DeviceJoin>> make(const OpTable& ops, DType dtype,
                                                    std::uint32_t replicas, bool divides,
                                                    Device& device);

  // The sum of all, in order.
  Expected<Tensor> sum(std::vector<Tensor> parts, Lanes& lanes) const;
  // The sum by their number.
  Expected<Tensor> mean(std::vector<Tensor> parts, Lanes& lanes) const;
  // All below each other, floats by the number of parts.
  Expected<Tensor> rows(std::vector<Tensor> parts, Lanes& lanes) const;

 private:
  explicit DeviceJoin(Device& device) : device_(device) {}
  Expected<Tensor> quotient(Tensor x, std::size_t n, Lanes& lanes) const;
  Expected<Tensor> result(Kernel& kernel, std::vector<Tensor> inputs, Lanes& lanes) const;

  Device& device_;
  DType dtype_ = DType::invalid;
  std::unique_ptr<Kernel> add_, concat_, divide_;
};

}  // namespace troupe
