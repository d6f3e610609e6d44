// One line per event on stderr: "I 12:34:56.789 actors/worker: joined". Thread-safe.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

enum class LogLevel : int { debug = 0, info = 1, warning = 2, error = 3, off = 4 };

// Process-wide threshold; the one setting that is global, because stderr is. Default: warning.
void set_log_level(LogLevel level);
LogLevel log_level();
void log_line(LogLevel level, std::string_view where, std::string_view message);

}  // namespace troupe

// TROUPE_LOG(info, "worker", fmt::format(...)): the message is built only when it is printed.
#define TROUPE_LOG(level, where, message)                                \
  do {                                                                   \
    if (::troupe::log_level() <= ::troupe::LogLevel::level)              \
      ::troupe::log_line(::troupe::LogLevel::level, (where), (message)); \
  } while (false)
