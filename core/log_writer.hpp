// Who writes log lines.
#pragma once

#include <functional>
#include <string_view>

namespace troupe {

// From now on lines of log_line() go to `write`, whole, with their newline and one at a time, from
// whichever thread logs; to stderr again when it is empty. For a program that draws on the
// terminal. `write` must not log. When this returns nobody is in the function that was set before.
void set_log_writer(std::function<void(std::string_view line)> write);

// To that function, or to stderr in one write, so that lines of several threads and processes do
// not interleave.
void write_log(std::string_view line);

// How log_line() writes: for people, or a JSON object for each line, with the fields time (UTC),
// level, process, where and message. As the environment's TROUPE_LOG_FORMAT says ("json") until it
// is set.
enum class LogFormat { text, json };
void set_log_format(LogFormat format);
LogFormat log_format();

}  // namespace troupe
