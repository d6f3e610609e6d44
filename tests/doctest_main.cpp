#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// Tests ask for absurd amounts of memory and expect a Status; the address sanitizer would stop the
// process instead. Without it nobody calls this.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
