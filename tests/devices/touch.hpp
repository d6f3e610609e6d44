// Whether the host may touch an address.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace troupe::test {

inline constexpr int kFaults = 42;

// What a child process does when it touches `address`: 0 it may, kFaults it faults.
inline int touch(const void* address, bool write) {
  const pid_t child = fork();
  if (child == 0) {
    struct sigaction action = {};
    action.sa_handler = [](int) { _exit(kFaults); };
    sigaction(SIGSEGV, &action, nullptr);
    auto* byte = static_cast<volatile char*>(const_cast<void*>(address));
    if (write)
      *byte = 1;
    else [[maybe_unused]]
      char c = *byte;
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace troupe::test
