// How stale the gradients of asynchronous training are.
#pragma once

#include <atomic>
#include <cstdint>

#include "core/ids.hpp"

namespace troupe {

// What a run with Commit::immediate missed: the commits between the values that it read and its
// own, or 0 if none of them changed what it read. One is shared by all runs that are to be told of
// together (RunOptions::staleness). Any thread.
class Staleness {
 public:
  void note(CommitNumber behind) {
    runs_.fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(behind, std::memory_order_relaxed);
    CommitNumber most = most_.load(std::memory_order_relaxed);
    while (behind > most && !most_.compare_exchange_weak(most, behind, std::memory_order_relaxed)) {
    }
  }

  std::uint64_t runs() const { return runs_.load(std::memory_order_relaxed); }
  // Of those runs; 0 if there are none.
  double mean() const {
    const std::uint64_t n = runs();
    return n == 0 ? 0 : double(sum_.load(std::memory_order_relaxed)) / double(n);
  }
  CommitNumber most() const { return most_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> runs_{0}, sum_{0};
  std::atomic<CommitNumber> most_{0};
};

}  // namespace troupe
