// A `troupe` that runs beside the test.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/paths.hpp"

// Its output is read line by line; both streams go into one pipe, which ends with the command. What
// its workers print comes through it.
class RunningCommand {
 public:
  // own_group: as a shell starts a job, so that signal_group() reaches the job alone.
  explicit RunningCommand(std::vector<std::string> arguments, bool own_group = false) {
    arguments.insert(arguments.begin(), build_dir() + "/bin/troupe");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    if (own_group) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    if (posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ) != 0) pid_ = -1;
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    out_ = ends[0];
  }
  ~RunningCommand() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) close(out_);
  }
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;

  // False when all output ended without `text`.
  bool wait_for(const std::string& text) {
    while (read_.find(text) == std::string::npos)
      if (!read_more()) return false;
    return true;
  }
  // What was printed so far is not looked at again.
  void forget() { read_.clear(); }
  // Whatever it prints in that time is read.
  void listen_for(std::chrono::milliseconds time) {
    const auto until = Clock::now() + time;
    pollfd output{out_, POLLIN, 0};
    for (;;) {
      auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0 || ::poll(&output, 1, int(left.count())) == 0 || !read_more()) return;
    }
  }
  void signal(int number) {
    if (pid_ > 0) kill(pid_, number);
  }
  void signal_group(int number) {
    if (pid_ > 0) kill(-pid_, number);
  }
  pid_t pid() const { return pid_; }
  // The exit code; within `patience`, or it is killed.
  int end(std::chrono::seconds patience = std::chrono::hours(1)) {
    auto until = Clock::now() + patience;
    pollfd output{out_, POLLIN, 0};
    auto left = [&] { return std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()); };
    do {
      if (::poll(&output, 1, int(std::max<std::int64_t>(0, left().count()))) == 0) {
        kill(pid_, SIGKILL);
        break;
      }
    } while (read_more());
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  const std::string& output() const { return read_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool read_more() {
    char piece[4096];
    ssize_t n = read(out_, piece, sizeof piece);
    if (n > 0) read_.append(piece, std::size_t(n));
    return n > 0;
  }

  pid_t pid_ = -1;
  int out_ = -1;
  std::string read_;
};
