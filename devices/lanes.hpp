// Lanes: the compute threads of a device, as a kernel sees them.
#pragma once

#include <cstdint>

#include "core/function_ref.hpp"

namespace troupe {

// Splits one kernel's work. The list of chunks is a function of the shape alone, never of the
// number of lanes, so that results have the same bits on any number of threads. The calling lane
// works too; no nesting: a call from inside a chunk runs inline.
class Lanes {
 public:
  virtual ~Lanes() = default;
  // Calls chunk(0) .. chunk(chunks - 1), on any lanes. Throws what the first threw, when all ended.
  virtual void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) = 0;
  // Threads that may work at once, >= 1. For information: never split by it.
  virtual int count() const = 0;
};

// No threads: chunks run in order on the caller. For tests and for plans of cheap kernels.
class InlineLanes final : public Lanes {
 public:
  void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) override {
    for (std::int64_t i = 0; i < chunks; ++i) chunk(i);
  }
  int count() const override { return 1; }
};

}  // namespace troupe
