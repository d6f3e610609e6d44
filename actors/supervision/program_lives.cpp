#include "actors/supervision/program_lives.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>

namespace troupe {

std::string ProgramLives::End::text() const {
  if (signal == 0) return fmt::format("ended with exit code {}", code);
  return fmt::format("was ended by signal {} ({})", signal, strsignal(signal));
}

ProgramLives::Decision ProgramLives::ended(const End& end, std::uint64_t position, Instant now) {
  const int code = end.signal != 0 ? 128 + end.signal : end.code;
  const bool may_pass = end.signal != 0 || end.code == kAgain;
  if (stopped_ != 0) return {{}, may_pass ? 128 + stopped_ : code, {}};
  if (!may_pass) return {{}, code, code == 0 ? std::string() : end.text()};
  if (position > furthest_) budget_.progressed();
  furthest_ = std::max(furthest_, position);
  if (const auto after = budget_.died(now)) {
    ++restarts_;
    return {after, 0, end.text()};
  }
  return {{},
          code,
          fmt::format("{}, {} times within {} s without getting further than step {}", end.text(),
                      options_.restarts + 1,
                      std::chrono::duration_cast<std::chrono::seconds>(options_.window).count(),
                      furthest_)};
}

}  // namespace troupe
