// Where in the client's program something was created.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace troupe {

// A source position. `here()` as a default argument captures the caller's line; clang 14 with
// libstdc++ 12 has no std::source_location, the builtins work on both compilers. Sites travel in
// graph definitions, so the file name is owned.
struct Site {
  std::string file;
  std::uint32_t line = 0;

  Site() = default;
  // A template, so that {0, 1} is no Site: it is a list of numbers.
  template <class File>
  requires(std::is_convertible_v<File, std::string>) Site(File file, std::uint32_t line)
      : file(std::move(file)), line(line) {}

  static Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {file, static_cast<std::uint32_t>(line)};
  }
  bool known() const { return line != 0; }
  // "mnist.cpp:15", or "?" when unknown.
  std::string text() const { return known() ? file + ":" + std::to_string(line) : "?"; }
  friend bool operator==(const Site&, const Site&) = default;
};

}  // namespace troupe
