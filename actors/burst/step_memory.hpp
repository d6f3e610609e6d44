// How much memory a step may hold in a process. Counted where memory is taken and given back: each
// buffer once, whoever shares it, as long as anybody has it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/buffer.hpp"
#include "core/tensor.hpp"

namespace troupe {

// What one attempt at a step holds in this process, over all its partitions. Any thread.
class StepMemory {
 public:
  explicit StepMemory(std::uint64_t limit) : limit_(limit) {}

  std::uint64_t limit() const { return limit_; }
  std::uint64_t used() const { return used_.load(std::memory_order_relaxed); }
  // False, and nothing is taken, where that would be more than the limit.
  bool take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

 private:
  const std::uint64_t limit_;
  std::atomic<std::uint64_t> used_{0};
};

// Hands out memory of a device for one step, which it counts. Owned through StepAllocatorPtr: like
// an arena it goes with the later of its owner and its last block. Any thread.
class StepAllocator final : public Allocator {
 public:
  StepAllocator(Allocator& from, std::shared_ptr<StepMemory> memory)
      : from_(from), memory_(std::move(memory)) {}
  StepAllocator(const StepAllocator&) = delete;
  StepAllocator& operator=(const StepAllocator&) = delete;

  // nullptr where the step may not have it, too: see refused().
  void* allocate(std::size_t bytes) override;
  void deallocate(void* data, std::size_t bytes) noexcept override;
  MemorySpace space() const override { return from_.space(); }

  // The tensor, with its memory counted like what is allocated here, unless somebody else has it,
  // too, or the step has counted it already. resource_exhausted where the step may not have it.
  Expected<Tensor> adopt(Tensor tensor);

  const StepMemory& memory() const { return *memory_; }
  // Bytes of what the step was refused last; asking forgets it. 0: nothing was.
  std::uint64_t take_refusal() { return refused_.exchange(0, std::memory_order_relaxed); }
  // The step counts this buffer.
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
