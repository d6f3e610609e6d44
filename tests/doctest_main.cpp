#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include "tests/paths.hpp"

std::string build_dir() { return TROUPE_BUILD_DIR; }
std::string source_dir() { return TROUPE_SOURCE_DIR; }

// Tests ask for absurd amounts of memory and expect a Status; a sanitizer would stop the process
// instead. Without one nobody calls these.
extern "C" const char* __asan_default_options();
extern "C" const char* __tsan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

// What NVIDIA's libraries keep for themselves, where a machine has them.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:/usr/local/cuda\nleak:/nvidia/\n";
}
