// An error of a system call in place of the signal that comes with it.
#pragma once

#include <csignal>

namespace troupe {

// While it exists, a system call of this thread that raises the signal only fails: SIGXFSZ, of a
// file that would be longer than `ulimit -f` allows (EFBIG), or SIGPIPE, of a pipe that nobody
// reads (EPIPE). So what Troupe writes does not end the program, whose own handlers and other
// threads it does not touch. One thread makes and destroys it. Leaves errno as it is.
class HeldSignal {
 public:
  explicit HeldSignal(int number);
  ~HeldSignal();
  HeldSignal(const HeldSignal&) = delete;
  HeldSignal& operator=(const HeldSignal&) = delete;

 private:
  sigset_t held_, before_;
  bool was_pending_ = false;
};

}  // namespace troupe
