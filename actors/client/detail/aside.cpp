#include "actors/client/detail/aside.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "actors/client/detail/callbacks.hpp"
#include "actors/client/detail/session_core.hpp"

namespace troupe::detail {
namespace {

constexpr std::chrono::seconds kAtEnd{20};

struct Aside {
  std::mutex mutex;
  std::condition_variable over;
  int open = 0;
  std::shared_ptr<std::thread> last;  // which joins the one before
};
// Never destroyed: the process may end before them.
Aside& aside() {
  static auto* const one = new Aside;
  return *one;
}

// Made after what a session uses, so it is destroyed before that.
struct WaitsAtEnd {
  const std::uint64_t forks = forks_before_this_process();  // whose threads are not here
  ~WaitsAtEnd() {
    if (forks == forks_before_this_process() && !Callbacks::here()) (void)closed_aside(kAtEnd);
  }
};

}  // namespace

bool close_aside(std::function<void()> close) {
  static const WaitsAtEnd at_end;
  Aside& all = aside();
  std::lock_guard lock(all.mutex);
  try {
    all.last = std::make_shared<std::thread>(
        [&all, before = all.last, close = std::move(close)]() mutable {
          if (before) before->join();
          before = nullptr;
          close();
          close = nullptr;
          std::lock_guard lock(all.mutex);
          if (--all.open == 0) all.over.notify_all();
        });
  } catch (const std::system_error&) {
    return false;
  }
  ++all.open;
  return true;
}

bool closed_aside(std::chrono::milliseconds within) {
  Aside& all = aside();
  std::unique_lock lock(all.mutex);
  if (!all.over.wait_for(lock, within, [&] { return all.open == 0; })) return false;
  if (const auto last = std::exchange(all.last, nullptr)) last->join();
  return true;
}

}  // namespace troupe::detail
