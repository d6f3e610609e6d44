// The numbers of a session's runs, assigned by its client.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// Assigns run numbers and tracks which runs have no answer. Owned by a client, which locks it if it
// has several threads.
class RunNumbers {
 public:
  explicit RunNumbers(std::uint64_t first) : next_(first) {}

  std::uint64_t next() {
    unanswered_.push_back(next_);
    return next_++;
  }
  // Ignored if repeated, or for an unknown number.
  void answered(std::uint64_t n) {
    auto at = std::lower_bound(unanswered_.begin(), unanswered_.end(), n);
    if (at != unanswered_.end() && *at == n) unanswered_.erase(at);
  }
  // Does not allocate if answers arrive in order.
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
