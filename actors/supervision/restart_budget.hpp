// A limit on restarting a process that keeps dying.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "core/hash.hpp"
#include "core/transaction.hpp"

namespace troupe {

// How often one child may be restarted, for one cause: 10 times in 60 s, each after a longer pause
// (50 ms, doubling to 5 s, with seeded jitter). A restart that was followed by a committed step
// does not count: it is no crash loop.
class RestartBudget {
 public:
  struct Options {
    std::size_t restarts = 10;
    Instant window = std::chrono::seconds(60);
    Instant first_delay = std::chrono::milliseconds(50), max_delay = std::chrono::seconds(5);
  };
  RestartBudget(Options options, std::uint64_t seed) : options_(options), random_(seed) {}

  // The child died. How long to wait before the next incarnation; nullopt: the budget is spent.
  std::optional<Instant> died(Instant now);
  // A step committed: restarts before now no longer count.
  void progressed();
  std::size_t left(Instant now) const;

 private:
  const Options options_;
  Random random_;
  std::deque<Instant> restarts_;
};

}  // namespace troupe
