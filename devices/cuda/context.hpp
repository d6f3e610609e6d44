// Context: one GPU in use by this process.
#pragma once

#include <memory>

#include "devices/cuda/diagnosis.hpp"
#include "devices/cuda/driver.hpp"

namespace troupe::cuda {

// The primary context of a GPU, held while this lives. A thread enters it before it calls the
// driver. Shared by the device and its memory, which tensors may keep longer.
class Context {
 public:
  // out_of_range when the driver has no such GPU.
  static Expected<std::shared_ptr<const Context>> make(Driver driver, int ordinal);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  ~Context();

  const Driver& driver() const { return driver_; }
  const GpuInfo& gpu() const { return gpu_; }
  // Makes it the calling thread's.
  void enter() const { driver_.cuCtxSetCurrent(handle_); }
  Status check(Result result, const char* call) const { return driver_.check(result, call); }

 private:
  Context(Driver driver, DeviceId id, ContextHandle handle, GpuInfo gpu)
      : driver_(std::move(driver)), id_(id), handle_(handle), gpu_(std::move(gpu)) {}

  const Driver driver_;
  const DeviceId id_;
  const ContextHandle handle_;
  const GpuInfo gpu_;
};
using ContextPtr = std::shared_ptr<const Context>;

}  // namespace troupe::cuda
