// The memory of the attempts whose partitions are in this process.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "actors/burst/step_memory.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Executors of one process share one: partitions of an attempt count together. Any thread.
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
  std::unordered_map<AttemptId, std::weak_ptr<StepMemory>>
      of_;  // over: while nobody has its values
  std::size_t sweep_at_ = kFewest;
};

}  // namespace troupe
