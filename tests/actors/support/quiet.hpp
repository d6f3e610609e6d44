// Tests that provoke warnings by the hundred, and check what they say elsewhere.
#pragma once

#include "core/log.hpp"

namespace troupe::test {

// Nothing is logged while it lives.
struct Quiet {
  Quiet() : before(log_level()) { set_log_level(LogLevel::off); }
  ~Quiet() { set_log_level(before); }
  LogLevel before;
};

}  // namespace troupe::test
