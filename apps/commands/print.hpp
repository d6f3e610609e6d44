// What commands print.
#pragma once

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace troupe {

// To stdout. What cannot be written shows in ferror(stdout), which ends the command with an error
// (cli.hpp). Nothing is thrown.
void write_out(std::string_view text);
// To stderr, at once. What cannot be written is left out: nobody is told that nobody listens, and a
// disk that is full or a terminal that is gone ends no training.
void write_err(std::string_view text);

template <class... T>
void print_out(fmt::format_string<T...> format, T&&... values) {
  write_out(fmt::format(format, std::forward<T>(values)...));
}
template <class... T>
void print_err(fmt::format_string<T...> format, T&&... values) {
  write_err(fmt::format(format, std::forward<T>(values)...));
}

}  // namespace troupe
