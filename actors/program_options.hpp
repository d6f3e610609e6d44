// Options of programs that are written with the library: the library's own, beside the program's.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.hpp"

namespace troupe {

struct ProgramOption {
  const char* name;   // "--threads"
  const char* value;  // "N"; empty: it takes none
  const char* about;
};

// Those of `options` that a program was started with, in order: "--threads 2", "--threads=2". Other
// arguments, and all after "--", are the program's own business. invalid_argument for one without
// its value, and for one that differs from one of these by one or two letters.
Expected<std::vector<std::pair<std::string_view, std::string>>> options_given(
    int argc, char** argv, std::span<const ProgramOption> options);

// One line each, for --help.
std::string options_text(std::span<const ProgramOption> options);
// What reading options in main begins with. If --help is among the arguments: prints "usage:
// PROGRAM [options]" with these lines, and exits. An Error that leaves main ends the program by its
// code.
void answer_help(int argc, char** argv, const std::string& options_text);

// A whole number from `low` to `high`; invalid_argument says what `option` wants.
Expected<std::int64_t> parse_count(std::string_view option, std::string_view text, std::int64_t low,
                                   std::int64_t high);

}  // namespace troupe
