#include "core/no_signals.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <stdexcept>
#include <thread>

#include "tests/core/signal_mask.hpp"

using namespace troupe;
using troupe::testing::is_blocked;

TEST_CASE("a thread that is to take no signals takes only those of its own faults") {
  const auto in_thread = [](int number) {
    bool taken = false;
    const auto start = [&] {
      const NoSignals none;
      return std::thread([&] { taken = !is_blocked(number); });
    };
    start().join();
    return taken;
  };
  for (int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGXFSZ, SIGPIPE})
    CHECK_FALSE(in_thread(number));
  for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGABRT, SIGPROF}) CHECK(in_thread(number));
}

TEST_CASE("who starts such a thread takes signals as before, also if none could be started") {
  sigset_t alarms, before;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, &before);
  try {
    const NoSignals none;
    CHECK(is_blocked(SIGTERM));
    throw std::runtime_error("no thread");
  } catch (const std::runtime_error&) {
    CHECK_FALSE(is_blocked(SIGTERM));
    CHECK(is_blocked(SIGALRM));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
