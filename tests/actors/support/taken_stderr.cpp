#include "tests/actors/support/taken_stderr.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>

#include "core/check.hpp"

// There where a sanitizer is.
extern "C" void __sanitizer_set_report_fd(void*) __attribute__((weak));

namespace troupe::test {
namespace {

void report_to(int file) {
  if (__sanitizer_set_report_fd)
    __sanitizer_set_report_fd(reinterpret_cast<void*>(std::intptr_t(file)));
}

}  // namespace

TakenStderr::TakenStderr(int to) : before_(::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) {
  TROUPE_CHECK(before_ >= 0 && ::dup2(to, STDERR_FILENO) == STDERR_FILENO, "stderr is taken");
  report_to(before_);
}

TakenStderr::~TakenStderr() {
  ::dup2(before_, STDERR_FILENO);
  report_to(STDERR_FILENO);
  ::close(before_);
}

}  // namespace troupe::test
