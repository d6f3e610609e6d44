// The x86-64 level of this processor: what the loader of kernels looks for, and what the build
// makes first. Includes nothing of ours, so that cmake/machine_level.cpp can ask at configure time.
#pragma once

#include <cpuid.h>

namespace troupe {

inline bool cpuid_bit(unsigned leaf, int bit) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(leaf, &a, &b, &c, &d) != 0 && (c >> bit & 1) != 0;
}

// 1 to 4: of the processor and its operating system (the builtins ask XGETBV too).
inline int machine_level() {
  __builtin_cpu_init();
  bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
            __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
            cpuid_bit(1, 29 /* F16C */) && cpuid_bit(1, 22 /* MOVBE */) &&
            cpuid_bit(0x80000001, 5 /* LZCNT */);
  bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
            __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512vl");
  bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") &&
            __builtin_cpu_supports("popcnt");
  return v4 ? 4 : v3 ? 3 : v2 ? 2 : 1;
}

}  // namespace troupe
