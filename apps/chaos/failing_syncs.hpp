// I/O errors for a program and what it starts, from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// A process whose fsync and fdatasync ask here before they are done, as those of all processes
// below it. While one of them is told to fail, these calls of its return EIO, which is what a
// program sees of a disk that breaks. Done with a filter of system calls (seccomp) that the process
// inherits; it also inherits that it can gain no privileges.
class FailingSyncs {
 public:
  // start_process(command) with such a filter. failed_precondition: the kernel, or a filter that
  // this process is under, does not allow it.
  static Expected<std::unique_ptr<FailingSyncs>> start(const std::vector<std::string>& command);
  // The process gets SIGTERM if it is still there.
  ~FailingSyncs();
  FailingSyncs(const FailingSyncs&) = delete;
  FailingSyncs& operator=(const FailingSyncs&) = delete;

  pid_t pid() const { return pid_; }
  // From now on those of `process` fail. 0: of none. kBelow: of all processes but pid().
  static constexpr pid_t kBelow = -1;
  void fail(pid_t process) { failing_ = process; }
  // How many have.
  std::uint64_t failed() const { return failed_; }

 private:
  FailingSyncs() = default;
  void answer(int listener);
  bool is_to_fail(pid_t thread) const;

  pid_t pid_ = -1;
  int wake_ = -1;
  std::atomic<pid_t> failing_ = 0;
  std::atomic<std::uint64_t> failed_ = 0;
  std::thread thread_;  // under the filter itself
};

}  // namespace troupe
