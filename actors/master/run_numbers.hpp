// The numbers of a session's runs, as its client gives them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// Gives runs their numbers and knows which of them have no answer yet. Owned by a client, which
// guards it if it has several threads.
class RunNumbers {
 public:
  explicit RunNumbers(std::uint64_t first) : next_(first) {}

  std::uint64_t next() {
    unanswered_.push_back(next_);
    return next_++;
  }
  // Said again, or of a number that was never given: nothing happens.
  void answered(std::uint64_t n) {
    auto at = std::lower_bound(unanswered_.begin(), unanswered_.end(), n);
    if (at != unanswered_.end() && *at == n) unanswered_.erase(at);
  }
  // Allocates nothing unless an answer has overtaken another one.
  Acknowledged acknowledged() const {
    auto end = unanswered_.end();
    std::uint64_t below = next_;
    for (; end != unanswered_.begin() && *std::prev(end) + 1 == below; --end) --below;
    return {below, {unanswered_.begin(), end}};
  }

 private:
  std::uint64_t next_;
  std::vector<std::uint64_t> unanswered_;  // ascending
};

}  // namespace troupe
