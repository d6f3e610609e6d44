// Processes that a master starts on its own machine.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/status.hpp"

namespace troupe {

// How a child process ended.
struct ChildEnd {
  int code = 0;            // of exit(); -1: it cannot be known any more
  int signal = 0;          // not 0: the signal that ended it
  std::string last_words;  // see Children::last_words
  // The rest of a sentence: "ended with exit code 1, having said 'cannot open x'".
  std::string text() const;
};

// Child processes that live no longer than this object.
class ChildProcesses {
 public:
  // Called on any thread, once for each child and before wait() returns. Must not block or call
  // back.
  using Ended = std::function<void(pid_t child, const ChildEnd& end)>;
  virtual ~ChildProcesses() = default;  // kills those that are left

  // Runs the file `program` with these arguments, and `input`, some KiB, for the child to read.
  // not_found, failed_precondition: it cannot be run. resource_exhausted: no room for another
  // process.
  virtual Expected<pid_t> start(const std::string& program,
                                const std::vector<std::string>& arguments,
                                std::string_view input) = 0;
  virtual void kill_all() = 0;
  // Waits until all have ended. A stopped one cannot leave and is killed at once, any other when
  // `patience` is over. Returns those that had not ended 5 s after they were killed: nothing can
  // end them, and they are not waited for any longer.
  virtual std::vector<pid_t> wait(std::chrono::milliseconds patience) = 0;
  // The end of its output so far: the last lines, as one line of printable characters. Complete for
  // a child that has ended.
  virtual std::string last_words(pid_t child) const = 0;
};

// Child processes of this process.
//
// They are in the process group of this process, so that job control (Ctrl-Z, `fg`) stops and
// continues them, too. Signals that ask the group to end (SIGINT, SIGTERM and the like, from a
// terminal or from `timeout`) are blocked in them from their first instruction on: this process
// handles them, and ends its children itself.
//
// Their output on either stream is passed on to one descriptor, by default this process's standard
// error, and the last of it is kept. A thread of this object's own reads it and waits for their
// ends; `ended` is called there.
class Children : public ChildProcesses {
 public:
  explicit Children(Ended ended = {}, int pass_on_to = STDERR_FILENO);
  ~Children() override;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  // The descriptor of a child's input.
  static constexpr int kInput = 3;
  Expected<pid_t> start(const std::string& program, const std::vector<std::string>& arguments,
                        std::string_view input) override;

  void kill(pid_t child);
  void kill_all() override;
  std::vector<pid_t> wait(std::chrono::milliseconds patience) override;
  std::string last_words(pid_t child) const override;
  std::optional<ChildEnd> end_of(pid_t child) const;  // none: it lives

 private:
  struct Child;

  void watch();
  void pass_on(std::string_view words);
  void listen(Child& child);
  void bury(Child& child);
  void wake() const;
  const Child* find(pid_t child) const;  // REQUIRES: mutex_

  const Ended ended_;
  const int pass_on_to_;
  const int wake_;                  // an eventfd: wakes poll() to look again
  std::atomic<bool> hurry_{false};  // children were killed: their output may be lost

  mutable std::mutex mutex_;  // of the rest
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Child>> children_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace troupe
