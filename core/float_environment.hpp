// The floating-point environment that kernels run in, whatever the thread's own is.
#pragma once

#include <cfenv>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace troupe {

// While it lives, this thread rounds to nearest, keeps denormals and traps nothing, so that a step
// has the same bits on a thread of ours and on a client's who set it otherwise.
class FloatEnvironment {
 public:
  FloatEnvironment() : changed_(!is_default()) {
    if (!changed_) return;
    std::fegetenv(&callers_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~FloatEnvironment() {
    if (changed_) std::fesetenv(&callers_);
  }
  FloatEnvironment(const FloatEnvironment&) = delete;
  FloatEnvironment& operator=(const FloatEnvironment&) = delete;

 private:
  static bool is_default() {
#if defined(__x86_64__)
    constexpr unsigned kRaised = 0x3f, kDefault = 0x1f80;  // of MXCSR
    return (_mm_getcsr() & ~kRaised) == kDefault;
#else
    return false;
#endif
  }

  const bool changed_;
  std::fenv_t callers_;
};

}  // namespace troupe
