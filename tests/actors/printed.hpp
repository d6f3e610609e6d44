// What `Print` writes, for a test that counts it or waits for it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <string_view>

#include "troupe/core/log.hpp"

namespace troupe::test {

// Takes stderr while it lives. A kernel that prints more than fits into a pipe (64 KiB) waits until
// it is read here.
class Printed {
 public:
  Printed() {
    REQUIRE(::pipe2(pipe_.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    ::fcntl(pipe_[1], F_SETFL, 0);
    set_log_level(LogLevel::off);
    ::dup2(pipe_[1], STDERR_FILENO);
    ::close(pipe_[1]);
  }
  ~Printed() {
    ::dup2(stderr_, STDERR_FILENO);
    ::close(stderr_);
    ::close(pipe_[0]);
    set_log_level(before_);
  }
  Printed(const Printed&) = delete;
  Printed& operator=(const Printed&) = delete;

  // How often it was printed until now.
  int count(std::string_view words) {
    read();
    int n = 0;
    for (std::size_t at = 0; (at = text_.find(words, at)) != text_.npos; at += words.size()) ++n;
    return n;
  }
  // For more of it, a while at most.
  void wait() {
    pollfd p{pipe_[0], POLLIN, 0};
    ::poll(&p, 1, 10);
  }

 private:
  void read() {
    char some[4096];
    for (ssize_t n; (n = ::read(pipe_[0], some, sizeof some)) > 0;)
      text_.append(some, std::size_t(n));
  }

  LogLevel before_ = log_level();
  int stderr_ = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
  std::array<int, 2> pipe_{};
  std::string text_;
};

}  // namespace troupe::test
