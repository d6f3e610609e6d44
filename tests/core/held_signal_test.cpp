#include "core/held_signal.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string>

#include "core/descriptor.hpp"
#include "core/log.hpp"
#include "tests/core/file_limit.hpp"
#include "tests/core/signal_mask.hpp"

using namespace troupe;
using troupe::testing::FileLimit;
using troupe::testing::is_blocked;

namespace {

// A file without a name, of so many bytes, written at its end.
Descriptor file_of(std::size_t bytes) {
  char name[] = "/tmp/troupe-held-XXXXXX";
  Descriptor file(mkostemp(name, O_CLOEXEC));
  REQUIRE(bool(file));
  unlink(name);
  const std::string filling(bytes, 'x');
  REQUIRE(write(file.get(), filling.data(), bytes) == ssize_t(bytes));
  return file;
}

}  // namespace

TEST_CASE("a file that may not be longer, and a pipe that nobody reads, are errors of the write") {
  const auto writes = [](int number, int to) {
    const HeldSignal held(number);
    return write(to, "more", 4) < 0 ? errno : 0;
  };
  const Descriptor file = file_of(100);
  {
    const FileLimit limit(100);
    CHECK(writes(SIGXFSZ, file.get()) == EFBIG);
    CHECK_FALSE(is_blocked(SIGXFSZ));
    CHECK(writes(SIGXFSZ, file.get()) == EFBIG);
  }
  CHECK(writes(SIGXFSZ, file.get()) == 0);
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  close(ends[0]);
  CHECK(writes(SIGPIPE, ends[1]) == EPIPE);
  CHECK_FALSE(is_blocked(SIGPIPE));
  close(ends[1]);
}

TEST_CASE("a signal that the program itself blocks stays blocked, and pending") {
  sigset_t pipes, before, pending;
  sigemptyset(&pipes);
  sigaddset(&pipes, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipes, &before);
  raise(SIGPIPE);
  { const HeldSignal held(SIGPIPE); }
  CHECK(is_blocked(SIGPIPE));
  sigpending(&pending);
  CHECK(sigismember(&pending, SIGPIPE) == 1);
  const timespec at_once{};
  CHECK(sigtimedwait(&pipes, nullptr, &at_once) == SIGPIPE);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST_CASE("a log that may not be longer does not end the program") {
  const Descriptor file = file_of(100), stderr_before(dup(STDERR_FILENO));
  REQUIRE(dup2(file.get(), STDERR_FILENO) >= 0);
  {
    const FileLimit limit(100);
    log_line(LogLevel::error, "test", "this finds no room");
  }
  REQUIRE(dup2(stderr_before.get(), STDERR_FILENO) >= 0);
  CHECK(lseek(file.get(), 0, SEEK_END) == 100);
}
