#include "core/no_signals.hpp"

#include <doctest/doctest.h>

#include <initializer_list>
#include <stdexcept>
#include <thread>

using namespace troupe;

namespace {

bool takes(int number) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, number) == 0;
}

}  // namespace

TEST_CASE("a thread that is to take no signals takes only those of its own faults") {
  const auto in_thread = [](int number) {
    bool taken = false;
    const auto start = [&] {
      const NoSignals none;
      return std::thread([&] { taken = takes(number); });
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
    CHECK_FALSE(takes(SIGTERM));
    throw std::runtime_error("no thread");
  } catch (const std::runtime_error&) {
    CHECK(takes(SIGTERM));
    CHECK_FALSE(takes(SIGALRM));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
