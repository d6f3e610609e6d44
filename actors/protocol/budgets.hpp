// Limits that keep failure and back-pressure bounded: restarts of a child, tensors on a channel.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/transaction.hpp"
#include "core/hash.hpp"

namespace troupe {

// How often one child may be restarted, for one cause: 10 times in 60 s, each after a longer
// pause (50 ms, doubling to 5 s, with seeded jitter). A restart that was followed by a committed
// step does not count: what works again has not crash-looped.
class RestartBudget {
 public:
  struct Options {
    std::size_t restarts = 10;
    Instant window = std::chrono::seconds(60);
    Instant first_delay = std::chrono::milliseconds(50), max_delay = std::chrono::seconds(5);
  };
  RestartBudget(Options options, std::uint64_t seed) : options_(options), random_(seed) {}

  // The child died. How long to wait before the next incarnation, or nothing: the budget is spent.
  std::optional<Instant> died(Instant now);
  // A step committed: restarts before now no longer count.
  void progressed();
  std::size_t left(Instant now) const;

 private:
  const Options options_;
  Random random_;
  std::deque<Instant> restarts_;
};

// The sender's end of one (attempt, channel): what may be in flight before the receiver consumed.
// Counts are cumulative, so a repeated or overtaken credit does no harm. What has no credit yet is
// parked and leaves lowest iteration first.
template <class Item>
class SendCredits {
 public:
  using Tag = std::vector<std::int64_t>;  // iteration numbers, outermost to innermost
  explicit SendCredits(std::uint64_t window) : window_(window) {}

  void offer(Tag tag, Item item) { parked_.emplace(std::move(tag), std::move(item)); }
  // The receiver has consumed `total` items so far.
  void consumed(std::uint64_t total) {
    if (total > consumed_ && total <= sent_) consumed_ = total;
  }
  // The next item that may leave, if any.
  std::optional<std::pair<Tag, Item>> next() {
    if (parked_.empty() || sent_ - consumed_ >= window_) return std::nullopt;
    auto node = parked_.extract(parked_.begin());
    ++sent_;
    return std::pair<Tag, Item>{std::move(node.key()), std::move(node.mapped())};
  }
  std::size_t parked() const { return parked_.size(); }
  std::uint64_t in_flight() const { return sent_ - consumed_; }

 private:
  std::uint64_t window_, sent_ = 0, consumed_ = 0;
  std::map<Tag, Item> parked_;
};

// The receiver's end: refuses what was never granted, and says what to grant.
class ReceiveCredits {
 public:
  explicit ReceiveCredits(std::uint64_t window) : window_(window) {}
  // False: the peer sent more than it had credit for, and is to be disconnected.
  bool accept() {
    if (received_ - consumed_ >= window_) return false;
    ++received_;
    return true;
  }
  // One item was used. Returns the cumulative count to send back.
  std::uint64_t consume() { return consumed_ < received_ ? ++consumed_ : consumed_; }

 private:
  std::uint64_t window_, received_ = 0, consumed_ = 0;
};

// The window of a channel: 1 outside loops, parallel_iterations + 1 for each frame around it,
// multiplied. Never above `cap`.
std::uint64_t channel_window(const std::vector<std::uint32_t>& parallel_iterations,
                             std::uint64_t cap = 1u << 20);

}  // namespace troupe
