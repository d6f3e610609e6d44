#include "core/stop_signal.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace troupe {

namespace {

std::atomic<int> first{0};
static_assert(std::atomic<int>::is_always_lock_free);  // as handlers of signals want

}  // namespace

void on_stop_signal(int signal) {
  int none = 0;
  if (!first.compare_exchange_strong(none, signal) && signal == SIGINT)
    _exit(exit_code_of_signal(signal));
}

int stop_signal() { return first; }

void forget_stop_signal() { first = 0; }

}  // namespace troupe
