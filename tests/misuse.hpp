// Tables of what a client must not write: each row is to throw an Error that names the row's line.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"

namespace troupe::test {

struct Misuse {
  std::string wanted;  // words of the message
  std::function<void()> f;
};

// Rows stand on lines of their own behind that of the call: each error is of a later line than the
// one before.
inline void check_refused(const std::vector<Misuse>& table, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  auto before = std::uint32_t(line);
  for (const Misuse& row : table) {
    INFO("behind line " << before << " of " << file << ": " << row.wanted);
    try {
      row.f();
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& e) {
      CHECK_MESSAGE(std::string(e.what()).find(row.wanted) != std::string::npos, e.what());
      CHECK_MESSAGE(e.status().site().file == file, e.what());
      CHECK_MESSAGE(e.status().site().line > before, e.what());
      before = e.status().site().line;
    }
  }
}

// The same where there is no line to tell: of operators and of what a value has kept.
inline void check_thrown(const std::vector<Misuse>& table) {
  for (const Misuse& row : table) {
    INFO("wanted: " << row.wanted);
    try {
      row.f();
      FAIL_CHECK("nothing was thrown");
    } catch (const Error& e) {
      CHECK_MESSAGE(std::string(e.what()).find(row.wanted) != std::string::npos, e.what());
    }
  }
}

}  // namespace troupe::test
