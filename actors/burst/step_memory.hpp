// The memory limit of a step in a process. Each buffer counts once, from its allocation until its
// last holder releases it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/buffer.hpp"
#include "core/tensor.hpp"

namespace troupe {

// The bytes that one attempt holds in this process, over all its partitions. Any thread.
class StepMemory {
 public:
  explicit StepMemory(std::uint64_t limit) : limit_(limit) {}

  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // False, and nothing is taken, if that would exceed the limit.
  bool take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

// Allocates and counts memory of a device for one step. Owned through StepAllocatorPtr; lives until
// both its owner and its last block are gone, like an arena. Any thread.
class StepAllocator final : public Allocator {
 public:
  StepAllocator(Allocator& from, std::shared_ptr<StepMemory> memory)
      : from_(from), memory_(std::move(memory)) {}
  StepAllocator(const StepAllocator&) = delete;
  StepAllocator& operator=(const StepAllocator&) = delete;

  // nullptr if the device has no memory or the limit refuses it: see take_refusal().
  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  MemorySpace space() const override { return from_.space(); }

  // The tensor, with its memory counted as if allocated here. Not counted: memory that is small,
  // shared or already counted. resource_exhausted if the limit refuses it.
  Expected<Tensor> adopt(Tensor tensor);

  const StepMemory& memory() const { return *memory_; }
  // The bytes that were refused last, or 0; resets it.
  std::uint64_t take_refusal() { return refused_.exchange(0, std::memory_order_relaxed); }
  // Whether the step counts this buffer.
  bool counts(const Buffer& buffer) const;
  void retire() noexcept { drop(); }

 private:
  ~StepAllocator() override = default;
  bool take(std::uint64_t bytes);
  void drop() noexcept {
    if (holders_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }

  Allocator& from_;
  const std::shared_ptr<StepMemory> memory_;
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<std::size_t> holders_{1};  // the owner and every block
  std::atomic<std::size_t> adopted_{0};
  std::mutex mutex_;
  std::unordered_map<void*, Buffer> whose_;  // of adopted blocks: the buffers that own them
};

struct RetireStepAllocator {
  void operator()(StepAllocator* allocator) const noexcept { allocator->retire(); }
};
using StepAllocatorPtr = std::unique_ptr<StepAllocator, RetireStepAllocator>;

}  // namespace troupe
