// Which signals this thread takes.
#pragma once

#include <csignal>

namespace troupe::testing {

inline bool is_blocked(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, number) == 1;
}

}  // namespace troupe::testing
