#include "actors/client/durable_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

Status none(const Status& gone) {
  return failed_precondition(
      gone.ok() ? "a durable run needs a Job with a folder, whose checkpoints it waits for"
                : "a durable run waits for the checkpoints of a Job: " + gone.message());
}

Status not_durable(CommitNumber commit, const Status& why) {
  return Status(why.code(), fmt::format("the run is over, at commit {}, but that is not known to "
                                        "be in a checkpoint: {}",
                                        commit, why.message()));
}

}  // namespace

std::uint64_t DurableRuns::opened(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  keeper_ = std::this_thread::get_id();
  return ++keeper_number_;
}

void DurableRuns::end(const Status& why, Waiters& left) {
  wake_ = nullptr;
  gone_ = why;
  left.swap(waiters_);
  left.merge(later_);
}

void DurableRuns::closed(std::uint64_t keeper, const Status& why) {
  Waiters left;
  {
    std::lock_guard lock(mutex_);
    if (keeper != keeper_number_ || !wake_) return;
    end(why, left);
  }
  answer_all(left, why);
}

void DurableRuns::ended(const Status& why) {
  Waiters left;
  {
    std::lock_guard lock(mutex_);
    end(why, left);
  }
  answer_all(left, why);
}

Status DurableRuns::available() const {
  std::lock_guard lock(mutex_);
  return wake_ ? ok_status() : none(gone_);
}

Status DurableRuns::may_wait(std::string_view method) const {
  std::lock_guard lock(mutex_);
  if (!wake_ || keeper_ != std::this_thread::get_id()) return ok_status();
  return failed_precondition(
      fmt::format("{} of a durable run was called on the thread of the Job, which writes the "
                  "checkpoint that it waits for",
                  method));
}

void DurableRuns::restored(CommitNumber committed) {
  std::lock_guard lock(mutex_);
  durable_ = taking_ = committed;
}

void DurableRuns::wait(CommitNumber commit, Clock::time_point until, Answer answer,
                       bool committed) {
  Status now = ok_status();
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    if (commit > undone_from_ && commit < undone_until_) {
      now = not_durable(commit, aborted("the job went back to an earlier checkpoint"));
    } else if (committed && commit <= durable_) {
      // It is in a checkpoint.
    } else if (!wake_) {
      now = not_durable(commit, gone_.ok() ? none(gone_) : gone_);
    } else if (until <= Clock::now()) {
      now = not_durable(commit, deadline_exceeded("its timeout has passed"));
    } else {
      // The keeper already knows of the other runs that need its next state.
      Waiters& all = committed ? waiters_ : later_;
      const bool first = all.upper_bound(committed ? taking_ : states_) == all.end();
      if (first || until != Clock::time_point::max()) wake = wake_;
      all.emplace(committed ? commit : states_ + 1, Waiter{commit, until, std::move(answer)});
    }
  }
  if (wake) wake();
  if (answer) answer(now);
}

bool DurableRuns::wanted() const {
  std::lock_guard lock(mutex_);
  return waiters_.upper_bound(std::max(taking_, durable_)) != waiters_.end() ||
         later_.upper_bound(states_) != later_.end();
}

void DurableRuns::begin_state() {
  std::lock_guard lock(mutex_);
  ++states_;
}

void DurableRuns::taking(CommitNumber committed) {
  std::lock_guard lock(mutex_);
  taking_ = std::max(taking_, committed);
}

void DurableRuns::written(CommitNumber committed, const Status& status) {
  Waiters over;
  {
    std::lock_guard lock(mutex_);
    move(waiters_, waiters_.begin(), waiters_.upper_bound(committed), over);
    move(later_, later_.begin(), later_.upper_bound(states_), over);
    if (status.ok()) durable_ = std::max(durable_, committed);
    taking_ = durable_;
  }
  answer_all(over, status);
}

void DurableRuns::undone(CommitNumber from, CommitNumber until) {
  Waiters over;
  {
    std::lock_guard lock(mutex_);
    undone_from_ = from;
    undone_until_ = until;
    move(waiters_, waiters_.upper_bound(from), waiters_.lower_bound(until), over);
    move(later_, later_.begin(), later_.end(), over);
  }
  answer_all(over, aborted("the job went back to an earlier checkpoint"));
}

std::optional<DurableRuns::Clock::time_point> DurableRuns::expire(Clock::time_point now) {
  Waiters over;
  auto next = Clock::time_point::max();
  {
    std::lock_guard lock(mutex_);
    for (Waiters* all : {&waiters_, &later_})
      for (auto at = all->begin(); at != all->end();) {
        const auto each = at++;
        if (each->second.until <= now)
          over.insert(all->extract(each));
        else
          next = std::min(next, each->second.until);
      }
  }
  answer_all(over, deadline_exceeded("its timeout has passed"));
  return next == Clock::time_point::max() ? std::nullopt : std::optional(next);
}

void DurableRuns::move(Waiters& from, Waiters::iterator begin, Waiters::iterator end, Waiters& to) {
  while (begin != end) to.insert(from.extract(begin++));
}

void DurableRuns::answer_all(Waiters& waiters, const Status& why) {
  for (auto& [_, waiter] : waiters)
    std::exchange(waiter.answer, {})(why.ok() ? why : not_durable(waiter.commit, why));
}

}  // namespace troupe
