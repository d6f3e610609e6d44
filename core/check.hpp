// TROUPE_CHECK: a broken invariant of our own stops the process. Never for input.
#pragma once

#include <string_view>

namespace troupe {

// Prints file, line, condition and reason to stderr and aborts.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               std::string_view why);

}  // namespace troupe

#define TROUPE_CHECK(condition, why)                                 \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::troupe::check_failed(__FILE__, __LINE__, #condition, (why)); \
  } while (false)
