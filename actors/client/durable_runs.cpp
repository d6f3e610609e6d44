#include "actors/client/durable_runs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace troupe {
namespace {

Status none() {
  return failed_precondition(
      "a durable run needs a Job with a folder, whose checkpoints it waits for");
}

Status not_durable(CommitNumber commit, const Status& why) {
  return Status(why.code(), fmt::format("the run is over, at commit {}, but that is not known to "
                                        "be in a checkpoint: {}",
                                        commit, why.message()));
}

}  // namespace

void DurableRuns::opened(std::function<void()> wake) {
  std::lock_guard lock(mutex_);
  wake_ = std::move(wake);
  keeper_ = std::this_thread::get_id();
}

void DurableRuns::closed(const Status& why) {
  Waiters left;
  {
    std::lock_guard lock(mutex_);
    wake_ = nullptr;
    gone_ = why;
    left.swap(waiters_);
  }
  answer_all(left, [&](CommitNumber commit) { return not_durable(commit, why); });
}

Status DurableRuns::available() const {
  std::lock_guard lock(mutex_);
  return wake_ ? ok_status() : none();
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

void DurableRuns::wait(CommitNumber commit, Clock::time_point until, Answer answer) {
  Status now = ok_status();
  std::function<void()> wake;
  {
    std::lock_guard lock(mutex_);
    if (commit > durable_ && wake_) {
      // The keeper has heard of those that its next state will be for.
      const bool first = waiters_.upper_bound(taking_) == waiters_.end();
      if (first || until != Clock::time_point::max()) wake = wake_;
      waiters_.emplace(commit, Waiter{until, std::move(answer)});
    } else if (commit > durable_) {
      now = not_durable(commit, gone_.ok() ? none() : gone_);
    }
  }
  if (wake) wake();
  if (answer) answer(now);
}

bool DurableRuns::wanted() const {
  std::lock_guard lock(mutex_);
  return waiters_.upper_bound(std::max(taking_, durable_)) != waiters_.end();
}

void DurableRuns::taking(CommitNumber committed) {
  std::lock_guard lock(mutex_);
  taking_ = std::max(taking_, committed);
}

void DurableRuns::written(CommitNumber committed, const Status& status) {
  Waiters over;
  {
    std::lock_guard lock(mutex_);
    const auto end = waiters_.upper_bound(committed);
    for (auto at = waiters_.begin(); at != end;) over.insert(waiters_.extract(at++));
    if (status.ok()) durable_ = std::max(durable_, committed);
    taking_ = durable_;
  }
  answer_all(over, [&](CommitNumber commit) {
    return status.ok() ? ok_status() : not_durable(commit, status);
  });
}

std::optional<DurableRuns::Clock::time_point> DurableRuns::expire(Clock::time_point now) {
  Waiters over;
  auto next = Clock::time_point::max();
  {
    std::lock_guard lock(mutex_);
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      const auto each = at++;
      if (each->second.until <= now)
        over.insert(waiters_.extract(each));
      else
        next = std::min(next, each->second.until);
    }
  }
  answer_all(over, [&](CommitNumber commit) {
    return not_durable(commit, deadline_exceeded("its timeout has passed"));
  });
  return next == Clock::time_point::max() ? std::nullopt : std::optional(next);
}

void DurableRuns::answer_all(Waiters& waiters, const std::function<Status(CommitNumber)>& status) {
  for (auto& [commit, waiter] : waiters) std::exchange(waiter.answer, {})(status(commit));
}

}  // namespace troupe
