// Threads that take none of the program's signals.
#pragma once

#include <csignal>
#include <initializer_list>

namespace troupe {

// While it exists, this thread and those that it starts have the signals blocked that are sent to
// the process: they are for the threads of the program, which may wait for them. Not those that a
// thread raises by a fault of its own, nor SIGPROF, by which profilers find out who computes. For
// threads that run only our own code: a process that a thread starts inherits what it blocks. The
// mask is as before afterwards, also if no thread could be started.
class NoSignals {
 public:
  NoSignals() {
    sigset_t sent;
    sigfillset(&sent);
    for (int number : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT, SIGPROF})
      sigdelset(&sent, number);
    pthread_sigmask(SIG_BLOCK, &sent, &before_);
  }
  ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace troupe
