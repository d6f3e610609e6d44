// What becomes of a program that somebody keeps running.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "actors/supervision/restart_budget.hpp"
#include "core/transaction.hpp"

namespace troupe {

// The machine of a supervisor of one program, which lives again after what can pass: a signal, or
// exit code 75, with which it says that a part of its job was lost. Every other exit code is the
// program's own word, and the supervisor's, too: 0, an error of its input, a stop that it was asked
// for. No clock, no processes.
//
// A restart costs one of the budget. All are forgiven when the job is further than it ever was:
// faults in a job that gets on end it never, and a program that dies at the same place each time
// ends with its cause.
class ProgramLives {
 public:
  static constexpr int kAgain = 75;  // of exit(): EX_TEMPFAIL

  ProgramLives(RestartBudget::Options options, std::uint64_t seed)
      : options_(options), budget_(options, seed) {}

  struct End {
    int code = 0;    // of exit()
    int signal = 0;  // not 0: what ended it
    // "ended with exit code 75", "was ended by signal 9 (Killed)"
    std::string text() const;
  };
  struct Decision {
    std::optional<Instant> again;  // after this; none: it is over
    int exit_code = 0;             // of the supervisor, if it is
    std::string why;               // empty: it ended as it should
  };

  // Somebody asked the supervisor to end: the next end is the last.
  void stop(int signal) { stopped_ = signal; }
  bool stopped() const { return stopped_ != 0; }
  // `position`: how far the job is, as far as that is kept.
  Decision ended(const End& end, std::uint64_t position, Instant now);
  int restarts() const { return restarts_; }

 private:
  const RestartBudget::Options options_;
  RestartBudget budget_;
  std::uint64_t furthest_ = 0;
  int restarts_ = 0, stopped_ = 0;
};

}  // namespace troupe
