#include "core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace troupe {

void check_failed(const char* file, int line, const char* condition, std::string_view why) {
  std::fprintf(stderr, "%s:%d: check failed: %s: %.*s\n", file, line, condition, int(why.size()),
               why.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace troupe
