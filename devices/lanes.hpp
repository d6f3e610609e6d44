// Lanes: the compute threads of a device, for kernels.
#pragma once

#include <cstdint>

#include "core/function_ref.hpp"

namespace troupe {

// Splits one kernel's work into chunks. The chunks depend only on shapes, never on the number of
// lanes, so that results have the same bits on any number of threads. The calling lane works, too.
// A call from inside a chunk runs inline.
class Lanes {
 public:
  virtual ~Lanes() = default;
  // Calls chunk(0) .. chunk(chunks - 1), on any lanes; at the end rethrows the first exception.
  virtual void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) = 0;
  // The number of threads, >= 1. For information: never split work by it.
  virtual int count() const = 0;
};

// No threads: chunks run in order on the caller. For tests and for cheap kernels.
class InlineLanes final : public Lanes {
 public:
  void parallel(std::int64_t chunks, FunctionRef<void(std::int64_t)> chunk) override {
    for (std::int64_t i = 0; i < chunks; ++i) chunk(i);
  }
  int count() const override { return 1; }
};

}  // namespace troupe
