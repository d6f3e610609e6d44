// OpenCalls: the calls of a session that are not answered yet.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "actors/call.hpp"
#include "core/status.hpp"

namespace troupe::detail {

// If the session's runtime fails, they are answered here. Any thread.
class OpenCalls {
 public:
  // Adds the call. After a fault it returns the fault's status instead.
  Status add(const std::shared_ptr<Call>& call) {
    std::lock_guard lock(mutex_);
    if (!fault_.ok()) return fault_;
    // A client that makes one call after the other leaves one place, and the memory of one call.
    if (!calls_.empty() && calls_.back().expired()) {
      calls_.back() = call;
      return ok_status();
    }
    if (calls_.size() >= sweep_at_) {
      std::erase_if(calls_, [](const std::weak_ptr<Call>& each) {
        const auto open = each.lock();
        return !open || open->done();
      });
      sweep_at_ = std::max<std::size_t>(64, 2 * calls_.size());
    }
    calls_.push_back(call);
    return ok_status();
  }
  // Answers all calls, and those that come later, with the first fault.
  void fail(Status fault) {
    std::vector<std::weak_ptr<Call>> open;
    {
      std::lock_guard lock(mutex_);
      if (fault_.ok()) fault_ = std::move(fault);
      open.swap(calls_);
    }
    for (const auto& each : open)
      if (auto call = each.lock()) {
        CallResult result;
        result.status = this->fault();
        call->finish(std::move(result));
      }
  }
  Status fault() const {
    std::lock_guard lock(mutex_);
    return fault_;
  }
  // The answer to calls whose message the master did not handle: the session is closed, or why
  // there is another master now.
  void set_unread(Status status) {
    std::lock_guard lock(mutex_);
    unread_ = std::move(status);
  }
  Status unread() const {
    std::lock_guard lock(mutex_);
    return fault_.ok() ? unread_ : fault_;
  }

 private:
  mutable std::mutex mutex_;
  Status fault_, unread_ = failed_precondition("the session is closed");
  std::vector<std::weak_ptr<Call>> calls_;
  std::size_t sweep_at_ = 64;
};

}  // namespace troupe::detail
