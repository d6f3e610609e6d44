// FakeDevice: an accelerator made of threads. The example to copy for a new device, and what the
// runtime's tests run on: whoever reads device memory from the host, forgets to wait for a ticket
// or lets go of memory too early is found out here, without hardware.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "devices/device.hpp"

namespace troupe {

struct FakeOptions {
  std::uint64_t seed = 1;                     // of the delays
  std::chrono::microseconds max_delay{100};   // before each work item; 0: none
  std::uint64_t fail_at = 0;                  // the n-th work item of the device, from 1; 0: none
  int streams = 1;                            // 1 .. 8; with more than one, copies use the last
  int lanes = 2;                              // threads for bursts
  std::size_t memory = std::size_t{1} << 30;  // device memory
  std::size_t host_memory_cap = 0;            // of host_allocator(); 0: no limit
};

// Work runs later, on one thread per stream, in the order of its issue, after random delays. A work
// item that fails is named in the status of its ticket ("in work 12 of stream 0 on ..."), and
// nothing runs on that stream afterwards; a stream that waits on a failed ticket fails too.
// Callbacks of on_complete run on the stream's thread, without locks held, in ticket order.
// The destructor runs everything issued and launched before, without delays, and what that issues
// and launches; it must not run on a thread of the device.
class FakeDevice : public Device {
 public:
  using Device::stream;
  // Stream 0 is stream(). REQUIRES: index < streams().
  virtual Stream& stream(int index) = 0;
  virtual int streams() const = 0;
  // `tensor` as work on this device's streams sees it: the same bytes at an address that can be
  // touched. Host tensors come back as they are. It holds no reference on the memory: made at
  // issue, while the tensor lives, it is good until the work issued then is done (FakeMemory says
  // why). Never use it on another thread.
  virtual Tensor alias(const Tensor& tensor) const = 0;
};

std::unique_ptr<FakeDevice> make_fake_device(DeviceName name, FakeOptions options = {});

// The alias for code that sees a Device. REQUIRES: `device` is a FakeDevice.
Tensor device_alias(const Device& device, const Tensor& tensor);

}  // namespace troupe
