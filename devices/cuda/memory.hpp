// Memory of a GPU, and the pinned host memory that it copies from and to.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "devices/arena.hpp"
#include "devices/cuda/context.hpp"

namespace troupe::cuda {

// An arena of device memory that knows which kernels used a block last.
//
// A freed block is handed out again at once. Kernels may use it at once, since its last users were
// issued on the same stream. Other streams first wait for the kernels issued before the block was
// freed: may_use_after(). So kernels need no reference on their memory once they are issued.
//
// Owned by the device through retire(), like an Arena: blocks may outlive the device.
class GpuMemory final : public Allocator {
 public:
  // At most `cap` bytes at a time, in pieces that are asked of the driver as they are needed; those
  // in which nothing is used go back to it when there would not be enough for another one.
  GpuMemory(ContextPtr context, std::size_t cap);
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  MemorySpace space() const override { return MemorySpace::device; }

  // Told by the device: the kernels' stream has been given work `sequence`.
  void issued(std::uint64_t sequence) { issued_.store(sequence); }
  // The work of the kernels' stream after which another stream may write `block`, as allocate gave
  // it; 0: none. Where kernels may have been given the block since, all that was issued.
  std::uint64_t may_use_after(const void* block);

  std::size_t cap() const { return cap_; }
  std::size_t bytes_in_use() const { return arena_->bytes_in_use(); }
  std::size_t peak_bytes() const { return arena_->peak_bytes(); }
  void reset_peak() { arena_->reset_peak(); }
  // What is in use, and by which nodes (NamedWork): "7 MiB of 7.2 MiB of DEVICE are in use, ...".
  std::string text(const std::string& device);
  // Of the driver, which refused memory for another reason than that there is none: the GPU has
  // failed.
  Status failure() const;
  void retire() noexcept { drop(); }

 private:
  // What had been issued when a block was freed last, and when it was handed out. Of a block in use
  // its size, and the node that took it.
  struct Use {
    std::uint64_t freed = 0, allocated = 0;
    std::size_t bytes = 0;
    std::string node;
  };
  class Pages;

  // What the driver answered, kSuccess too.
  void refuse(Result result, const char* call) {
    refused_call_.store(call);
    refusal_.store(result);
  }
  ~GpuMemory() override = default;
  void drop() noexcept;
  // Blocks that lay there: the driver has the memory again.
  void forget(std::uint64_t at, std::size_t size);

  const ContextPtr context_;
  const std::size_t cap_;
  std::atomic<std::uint64_t> issued_{0};
  std::atomic<std::size_t> taken_{0};      // bytes, of the driver
  std::atomic<bool> refused_{false};       // the last that was asked for, and not told of yet
  std::atomic<Result> refusal_{kSuccess};  // the driver's last answer
  std::atomic<const char*> refused_call_{"cuMemAlloc"};  // whose it is
  std::atomic<std::uint64_t> recut_{0};                  // issued when pages were last given back
  std::atomic<std::size_t> holders_{1};                  // the device and every block
  std::mutex mutex_;
  std::unordered_map<const void*, Use> uses_;  // of every block in pieces that there are
  ArenaPtr arena_;
};

struct RetireGpuMemory {
  void operator()(GpuMemory* memory) const noexcept { memory->retire(); }
};
using GpuMemoryPtr = std::unique_ptr<GpuMemory, RetireGpuMemory>;

// Host memory that the GPU reads and writes by itself, while the host goes on. Where the driver
// pins none it is of the heap: copies then make the host wait.
std::unique_ptr<PageSource> pinned_pages(ContextPtr context);

}  // namespace troupe::cuda
