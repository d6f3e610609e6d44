// FakeDevice: an accelerator made of threads. The example to copy for a new device, and the device
// of the runtime's tests: code that reads device memory from the host, forgets to wait for a ticket
// or releases memory too early fails here, without hardware.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>

#include "devices/host_stream.hpp"

namespace troupe {

struct FakeOptions {
  std::uint64_t seed = 1;                     // for the delays
  std::chrono::microseconds max_delay{100};   // before each work item; 0: none
  std::uint64_t fail_at = 0;                  // the n-th work item of the device, from 1; 0: none
  int streams = 1;                            // 1 .. 8; with more than one, copies use the last
  int lanes = 2;                              // threads for bursts
  std::size_t memory = std::size_t{1} << 30;  // device memory
  std::size_t host_memory_cap = 0;            // of host_allocator(); 0: no limit
};

// Work runs later, on one thread per stream, in the order of issue, after random delays. A failed
// work item is named in the status of its ticket ("in work 12 of stream 0 on ..."), and nothing
// runs on that stream afterwards; a stream that waits on a failed ticket fails, too. Callbacks of
// on_complete run on the stream's thread, without locks held, in ticket order. The destructor runs
// all issued work and launched bursts, and what these issue and launch, without delays; it must not
// be called on a thread of the device.
class FakeDevice : public Device {
 public:
  HostStream& stream() override = 0;
  // Stream 0 is stream(). REQUIRES: index < streams().
  virtual HostStream& stream(int index) = 0;
  virtual int streams() const = 0;
  // `tensor` for work on this device's streams: the same bytes at an accessible address. Host
  // tensors are returned unchanged. It holds no reference to the memory: made at issue, while the
  // tensor lives, it is valid until the work issued then is done (see FakeMemory). Never use it on
  // another thread.
  virtual Tensor alias(const Tensor& tensor) const = 0;
};

std::unique_ptr<FakeDevice> make_fake_device(DeviceName name, FakeOptions options = {});

// Its stream and the alias for code that sees a Device. REQUIRES: `device` is a FakeDevice.
HostStream& host_stream(Device& device);
Tensor device_alias(const Device& device, const Tensor& tensor);

}  // namespace troupe
