// Files that may not be long.
#pragma once

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace troupe::testing {

// While it exists no file of this process may be longer. Those that are written beyond it are not
// made: a test that fails is ended by SIGXFSZ.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    REQUIRE(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit tight = before_;
    tight.rlim_cur = bytes;
    REQUIRE(setrlimit(RLIMIT_FSIZE, &tight) == 0);
  }
  ~FileLimit() { CHECK(setrlimit(RLIMIT_FSIZE, &before_) == 0); }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace troupe::testing
