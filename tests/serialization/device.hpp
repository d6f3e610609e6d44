// A device that a test may try to write over.
#pragma once

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

#include "tests/serialization/temporary.hpp"

namespace troupe::testing {

// One of the test's own, like /dev/full, where the user may make it, and so may replace that of the
// machine; else that of the machine.
inline std::string a_device(const TemporaryDir& dir) {
  const std::string own = dir.path("device");
  const bool made = ::mknod(own.c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0;
  REQUIRE((made || ::geteuid() != 0));
  return made ? own : "/dev/full";
}

}  // namespace troupe::testing
