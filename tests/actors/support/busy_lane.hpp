// A lane that is at work for as long as a test likes, whatever the machine does meanwhile.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>

#include "core/log.hpp"
#include "tests/actors/support/nodes.hpp"

namespace troupe::test {

// `work` prints more than fits into the pipe that stderr is meanwhile, so that its kernel does not
// return before release().
class BusyLane {
 public:
  BusyLane(Graph& g, const char* device) {
    REQUIRE(::pipe2(pipe_.data(), O_CLOEXEC) == 0);
    auto there = g.with_device(device);
    std::string text(std::size_t(::fcntl(pipe_[1], F_GETPIPE_SZ)) + 1, '.');
    work = print(constant(g, 0.0f), {.message = std::move(text)});
    set_log_level(LogLevel::off);  // nobody else is to wait for the pipe
    ::dup2(pipe_[1], STDERR_FILENO);
    ::close(pipe_[1]);
  }
  ~BusyLane() {
    release();
    ::close(pipe_[0]);
    ::close(stderr_);
    set_log_level(before_);
  }
  BusyLane(const BusyLane&) = delete;
  BusyLane& operator=(const BusyLane&) = delete;

  // Until a lane has the work.
  void wait() {
    while (!at_work(-1)) {
    }
  }
  // Whether a lane has the work, or has it within so many milliseconds; -1: whenever.
  bool at_work(int within = 0) {
    pollfd p{pipe_[0], POLLIN, 0};
    return ::poll(&p, 1, within) > 0;
  }
  void release() {
    ::dup2(stderr_, STDERR_FILENO);
    for (char some[4096]; ::read(pipe_[0], some, sizeof some) > 0;) {
    }
  }

  Output work;

 private:
  LogLevel before_ = log_level();
  int stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  std::array<int, 2> pipe_{};
};

}  // namespace troupe::test
