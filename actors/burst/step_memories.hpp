// The memory accounts of the attempts with partitions in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "actors/burst/step_memory.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Shared by the executors of a process: partitions of an attempt count together. Any thread.
class StepMemories {
 public:
  explicit StepMemories(std::uint64_t limit) : limit_(limit) {}

  std::shared_ptr<StepMemory> of(const AttemptId& attempt) {
    std::lock_guard lock(mutex_);
    if (of_.size() >= sweep_at_) {
      std::erase_if(of_, [](const auto& entry) { return entry.second.expired(); });
      sweep_at_ = 2 * of_.size() + kFewest;
    }
    std::weak_ptr<StepMemory>& known = of_[attempt];
    std::shared_ptr<StepMemory> memory = known.lock();
    if (!memory) known = memory = std::make_shared<StepMemory>(limit_);
    return memory;
  }

 private:
  static constexpr std::size_t kFewest = 64;
  const std::uint64_t limit_;
  std::mutex mutex_;
  // Entries expire when nobody holds values of the attempt.
  std::unordered_map<AttemptId, std::weak_ptr<StepMemory>> of_;
  std::size_t sweep_at_ = kFewest;
};

}  // namespace troupe
