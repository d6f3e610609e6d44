// How long a worker waits for its master.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "core/accumulating_clock.hpp"
#include "core/status.hpp"
#include "core/transaction.hpp"

namespace troupe {

// Decides what a worker without a master does: try again, start over, or end.
//
// Owned by one thread. No clock: the caller passes the time to look(), at least ten times a second
// while is_joined() is false. Time in which the process was stopped does not count, nor does time
// in which a master lets it wait for a place.
class OrphanWait {
 public:
  static constexpr Instant kSilent = std::chrono::seconds(2);

  enum class Next {
    retry,  // not joined yet: ask the master again
    anew,   // the master is lost: a new one has another, unknown job
    end,
  };

  // `master`: its address, for people. `limit` 0: no waiting.
  OrphanWait(std::string master, Instant limit) : master_(std::move(master)), limit_(limit) {}

  void look(Instant moment, bool connected = false) {
    const Instant before = clock_.reading();
    clock_.look(moment);
    if (joined_) since_ = clock_.reading();
    if (!joined_ && connected) since_ += clock_.reading() - before;
  }
  // The master has given it a place. (It may be connected before, and refused or kept waiting.)
  void joined() {
    joined_ = true;
    since_ = clock_.reading();
  }
  bool is_joined() const { return joined_; }
  // Whether a worker that has not joined has waited for long enough.
  bool over() const { return limit_ > Instant(0) && !joined_ && waited() >= limit_; }
  // What to do now that the worker's part has ended with `how`.
  Next ended(const Status& how);
  // What to tell people who see nothing happen: once, when it has waited for kSilent; "" otherwise.
  std::string news();
  // Why it ends when it is over(): unavailable, with the address and the time.
  Status gave_up() const;

 private:
  Instant waited() const { return clock_.reading() - since_; }

  const std::string master_;
  const Instant limit_;
  AccumulatingClock clock_;
  bool joined_ = false;
  Instant since_{};  // of the clock's reading
  Status last_;      // why it is not there
  bool told_ = false;
};

}  // namespace troupe
