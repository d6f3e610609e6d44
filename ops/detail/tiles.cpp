// AMX: the processor has to have it, and a process to ask the operating system to keep its
// registers.
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ops/isa.hpp"

namespace troupe::ops {

bool has_tiles() {
  static const bool found = [] {
    constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, of <asm/prctl.h>
    constexpr unsigned kTileAndBf16 = 1u << 24 | 1u << 22;
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & kTileAndBf16) == kTileAndBf16 &&
           syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
  }();
  return found;
}

}  // namespace troupe::ops
