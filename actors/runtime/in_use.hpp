// Waits until what a process is about to free is no longer in use.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <utility>

namespace troupe {

// Every actor that may use the devices, the hub or the lanes of a process holds the token; these
// are freed when all holders are gone. The owner gives up its own token with release() and waits on
// a thread that no actor needs.
class InUse {
 public:
  InUse() {
    auto promise = std::make_shared<std::promise<void>>();
    gone_ = promise->get_future();
    token_ = std::shared_ptr<void>(promise.get(), [promise](void*) { promise->set_value(); });
  }

  // REQUIRES: release() was not called.
  const std::shared_ptr<void>& token() const { return token_; }
  void release() { token_.reset(); }
  // REQUIRES: release() was called.
  void wait() { gone_.wait(); }
  bool gone() const { return gone_within(std::chrono::seconds(0)); }
  bool gone_within(std::chrono::seconds limit) const {
    return gone_.wait_for(limit) == std::future_status::ready;
  }

 private:
  std::future<void> gone_;
  std::shared_ptr<void> token_;
};

}  // namespace troupe
