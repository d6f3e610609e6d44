// One round of PREPARE: which shards were asked, which have answered, and the time limit.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/accumulating_clock.hpp"
#include "core/transaction.hpp"

namespace troupe {

// An order to the shards about one commit number: stage an attempt's log under it, drop what they
// staged, or apply what is decided. One round at a time; a new one ends the last, whose answers no
// longer count. Part of the coordinator, which acts on the answers.
class StageRound {
 public:
  struct Options {
    // PREPARE is repeated after this time, at growing intervals.
    Instant resend_first = std::chrono::milliseconds(50), resend_max = std::chrono::seconds(1);
  };
  using Shards = std::set<TaskId>;
  using Keys = std::map<ResourceId, std::uint32_t>;  // how many write keys a resource has

  explicit StageRound(Options options) : options_(options), clock_(options.resend_max) {}

  // Adds the round, and to each shard its resources in `keys`, to `what`. A shard without an answer
  // `within` that time is late; time in which this process was stopped does not count.
  void begin(Prepare what, Keys keys, Shards shards, Instant within, Instant now);
  void end() { open_ = false; }

  bool open() const { return open_; }
  bool open(StageOrder order) const { return open_ && what_.order == order; }
  // REQUIRES: open(), also for all functions below.
  const Prepare& what() const { return what_; }
  Instant within() const { return within_; }
  const Shards& asked() const { return asked_; }
  const Shards& answered() const { return answered_; }

  // The messages for shards that have not answered.
  std::vector<std::pair<TaskId, Prepare>> unanswered() const;
  // Whether it answers this round and comes from a shard that was asked.
  bool expects(const Staged& message) const;
  void note(TaskId shard) { answered_.insert(shard); }

  // True if it is time to repeat the messages.
  bool again(Instant now);
  // The late shards. Must be called at next_wakeup() at the latest.
  std::vector<TaskId> late(Instant now);
  Instant next_wakeup() const { return std::min(resend_at_, until_); }

 private:
  const Options options_;
  bool open_ = false;
  std::uint64_t number_ = 0;  // of the round; increases
  Prepare what_;
  Keys keys_;
  Shards asked_, answered_;
  AccumulatingClock clock_;
  Instant within_{}, until_ = kNever, resend_at_ = kNever, resend_after_{};
};

}  // namespace troupe
