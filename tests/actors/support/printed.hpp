// What `Print` writes, for a test that counts it or waits for it.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/log.hpp"
#include "tests/actors/support/taken_stderr.hpp"

namespace troupe::test {

// Takes stderr while it lives. A kernel that prints more than fits into a pipe (64 KiB) waits until
// it is read here.
class Printed {
 public:
  Printed() : pipe_(open_pipe()), taken_(std::in_place, pipe_[1]) {
    ::close(pipe_[1]);
    set_log_level(LogLevel::off);
  }
  ~Printed() {
    taken_.reset();  // nobody writes to a pipe that nobody reads
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
  static std::array<int, 2> open_pipe() {
    std::array<int, 2> made{};
    REQUIRE(::pipe2(made.data(), O_CLOEXEC | O_NONBLOCK) == 0);
    ::fcntl(made[1], F_SETFL, 0);
    return made;
  }
  void read() {
    char some[4096];
    for (ssize_t n; (n = ::read(pipe_[0], some, sizeof some)) > 0;)
      text_.append(some, std::size_t(n));
  }

  LogLevel before_ = log_level();
  std::array<int, 2> pipe_;
  std::optional<TakenStderr> taken_;
  std::string text_;
};

}  // namespace troupe::test
