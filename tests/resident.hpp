// How much memory a process takes.
#pragma once

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "devices/detail/poison.hpp"
#if defined(TROUPE_POISON)
extern "C" std::size_t __sanitizer_get_current_allocated_bytes();
#endif

namespace troupe::testing {

// The memory of a process of this build that is there: what was allocated, not what is mapped from
// files, such as kernels that are loaded once a master wants them. Without the sanitizers' shadows
// on x86-64: of a large block that nobody touched, AddressSanitizer makes an eighth resident there,
// and ThreadSanitizer's grow several times as fast as the memory. 0: no such process.
inline std::uint64_t resident_bytes(const std::string& process = "self") {
#if defined(TROUPE_POISON)
  constexpr std::uint64_t kShadowBegin = 0x7fff8000, kShadowEnd = 0x10007fff8000;
#elif defined(__SANITIZE_THREAD__)
  constexpr std::uint64_t kShadowBegin = 0x10000000000, kShadowEnd = 0x550000000000;
#else
  constexpr std::uint64_t kShadowBegin = ~std::uint64_t{0}, kShadowEnd = ~std::uint64_t{0};
#endif
  std::ifstream file("/proc/" + process + "/smaps");
  std::uint64_t resident = 0;
  bool counts = false;
  for (std::string line; std::getline(file, line);) {
    unsigned long long begin = 0, last = 0, kilobytes = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &last) == 2)
      counts = (begin < kShadowBegin || begin >= kShadowEnd) && line.find('/') == line.npos;
    else if (counts && std::sscanf(line.c_str(), "Rss: %llu kB", &kilobytes) == 1)
      resident += kilobytes * 1024;
  }
  return resident;
}

// What this process holds and has not freed. AddressSanitizer does not give back what was freed.
inline std::uint64_t held_bytes() {
#if defined(TROUPE_POISON)
  return __sanitizer_get_current_allocated_bytes();
#else
  malloc_trim(0);
  return resident_bytes();
#endif
}

}  // namespace troupe::testing
