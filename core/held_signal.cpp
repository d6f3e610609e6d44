#include "core/held_signal.hpp"

#include <cerrno>
#include <ctime>

namespace troupe {

HeldSignal::HeldSignal(int number) {
  sigemptyset(&held_);
  sigaddset(&held_, number);
  sigset_t pending;
  sigpending(&pending);
  was_pending_ = sigismember(&pending, number) == 1;
  pthread_sigmask(SIG_BLOCK, &held_, &before_);
}

HeldSignal::~HeldSignal() {
  const int error = errno;
  const timespec at_once{};
  if (!was_pending_) sigtimedwait(&held_, nullptr, &at_once);
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  errno = error;
}

}  // namespace troupe
