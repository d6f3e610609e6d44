// Attempts of a random job whose resource goes on elsewhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/hash.hpp"
#include "core/transaction.hpp"

namespace troupe::testing {

// Attempts begin, one at a time is staged, and decided or not; each ends sometime.
class MovingAttempts {
 public:
  explicit MovingAttempts(std::uint64_t seed) : random_(seed) {}
  bool anything_staged() const { return staged_.a != 0; }

 protected:
  void begin() {
    const std::uint64_t a = next_a_++;
    alive_.push_back({{1, a}, {3, a}, decided_, a, min_live(), 0});
  }
  const AttemptInfo& any() { return alive_[random_.below(alive_.size())]; }
  bool is_staged(const AttemptInfo& a) const { return a.id == staged_; }
  // The number that the next one gets.
  StageRequest to_stage(const AttemptInfo& a, std::uint32_t keys) {
    staged_ = a.id;
    return {decided_ + 1, a.id, keys, min_live()};
  }
  void decide() {
    if (!anything_staged()) return;
    ++decided_;
    std::erase_if(alive_, [&](const AttemptInfo& a) { return is_staged(a); });
    staged_ = {};
  }
  void end_one() {
    const std::size_t at = random_.below(alive_.size());
    if (is_staged(alive_[at])) staged_ = {};
    alive_.erase(alive_.begin() + std::ptrdiff_t(at));
  }
  // A staged one may be decided first.
  void end_alive(bool decided) {
    if (decided) decide();
    staged_ = {};
    alive_.clear();
  }
  LiveList live_list() {
    LiveList list{1, ++sequence_, decided_, min_live(), next_a_, {}};
    for (const AttemptInfo& a : alive_)
      list.live.push_back({a.id.a, a.run, a.marks_from, a.snapshot});
    return list;
  }

  Random random_;
  std::vector<AttemptInfo> alive_;

 private:
  CommitNumber min_live() const {
    CommitNumber least = decided_;
    for (const AttemptInfo& a : alive_) least = std::min(least, a.snapshot);
    return least;
  }

  std::uint64_t next_a_ = 1, sequence_ = 0;
  CommitNumber decided_ = 0;
  AttemptId staged_;
};

}  // namespace troupe::testing
