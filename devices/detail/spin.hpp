// The pause of a spinning thread between two checks.
#pragma once

namespace troupe::detail {

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace troupe::detail
