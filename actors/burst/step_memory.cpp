#include "actors/burst/step_memory.hpp"

#include <string>

namespace troupe {
namespace {

// Smaller buffers are not counted.
constexpr std::size_t kLeastAdopted = 4096;

}  // namespace

bool StepMemory::take(std::uint64_t bytes) {
  std::uint64_t used = used_.load(std::memory_order_relaxed);
  do {
    if (bytes > limit_ || used > limit_ - bytes) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return true;
}

bool StepAllocator::take(std::uint64_t bytes) {
  if (!memory_->take(bytes)) {
    refused_.store(bytes, std::memory_order_relaxed);
    return false;
  }
  holders_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void* StepAllocator::allocate(std::size_t bytes) {
  if (!take(bytes)) return nullptr;
  void* data = from_.allocate(bytes);
  if (data) return data;
  memory_->give_back(bytes);
  drop();
  return nullptr;
}

void StepAllocator::deallocate(void* data, std::size_t bytes) noexcept {
  Buffer adopted;  // destroyed after the lock is released
  if (adopted_.load(std::memory_order_acquire) > 0) {
    std::lock_guard lock(mutex_);
    if (auto at = whose_.find(data); at != whose_.end()) {
      adopted = std::move(at->second);
      whose_.erase(at);
      adopted_.fetch_sub(1, std::memory_order_release);
    }
  }
  if (!adopted) from_.deallocate(data, bytes);
  adopted = {};
  memory_->give_back(bytes);
  drop();
}

Expected<Tensor> StepAllocator::adopt(Tensor tensor) {
  const Buffer& buffer = tensor.buffer();
  if (buffer.size() < kLeastAdopted || !buffer.unique() || buffer.space() != space() ||
      tensor.dtype() == DType::list || counts(buffer))
    return tensor;
  const std::size_t bytes = buffer.size();
  if (!take(bytes))
    return resource_exhausted("no memory for " + std::to_string(bytes) + " bytes that arrived");
  void* const data = buffer.data();
  {
    std::lock_guard lock(mutex_);
    whose_.emplace(data, buffer);
    adopted_.fetch_add(1, std::memory_order_release);
  }
  return Tensor(tensor.dtype(), tensor.shape(), Buffer::hand_over(data, bytes, *this),
                tensor.offset());
}

bool StepAllocator::counts(const Buffer& buffer) const {
  const auto* by = dynamic_cast<const StepAllocator*>(buffer.allocator());
  return by != nullptr && by->memory_ == memory_;
}

}  // namespace troupe
