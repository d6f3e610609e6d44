// One round of PREPARE: who was asked, who has answered, and until when the others may take.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/accumulating_clock.hpp"
#include "core/transaction.hpp"

namespace troupe {

// What the shards are told of one number: to stage an attempt's log under it, to drop what they
// staged, or to apply what is decided. One round at a time; a new one ends the one before, whose
// answers no longer count. Part of the coordinator, which decides what follows from an answer.
class StageRound {
 public:
  struct Options {
    // PREPARE is said again after that time, and again ever later.
    Instant resend_first = std::chrono::milliseconds(50), resend_max = std::chrono::seconds(1);
  };
  using Shards = std::set<TaskId>;
  using Keys = std::map<ResourceId, std::uint32_t>;  // how many write keys a resource has

  explicit StageRound(Options options) : options_(options), clock_(options.resend_max) {}

  // `what` lacks its round and resources: each shard is told of those in `keys` that are its own.
  // Who has not answered `within` that time, in which this process could look at a clock, is late.
  void begin(Prepare what, Keys keys, Shards shards, Instant within, Instant now);
  void end() { open_ = false; }

  bool open() const { return open_; }
  bool open(StageOrder order) const { return open_ && what_.order == order; }
  // REQUIRES: open(), as for all below.
  const Prepare& what() const { return what_; }
  Instant within() const { return within_; }
  const Shards& asked() const { return asked_; }
  const Shards& answered() const { return answered_; }

  // What those that have not answered are told.
  std::vector<std::pair<TaskId, Prepare>> unanswered() const;
  // It answers this round, and is one that was asked.
  bool expects(const Staged& message) const;
  void note(TaskId shard) { answered_.insert(shard); }

  // True when the time has come to say it again.
  bool again(Instant now);
  // Those whose time is up. Looks at the clock: call it at next_wakeup() at the latest.
  std::vector<TaskId> late(Instant now);
  Instant next_wakeup() const { return std::min(resend_at_, until_); }

 private:
  const Options options_;
  bool open_ = false;
  std::uint64_t number_ = 0;  // of the round: one more for each
  Prepare what_;
  Keys keys_;
  Shards asked_, answered_;
  AccumulatingClock clock_;
  Instant within_{}, until_ = kNever, resend_at_ = kNever, resend_after_{};
};

}  // namespace troupe
