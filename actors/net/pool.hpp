// Reusable receive buffers. A fresh large buffer costs more in page faults than its bytes cost on
// the wire.
#pragma once

#include <cstdint>
#include <memory>

#include "core/buffer.hpp"
#include "core/status.hpp"

namespace troupe {

// Makes 64-byte aligned buffers and keeps those that come back, up to `keep_bytes` in all, in
// classes at most a quarter apart. Safe from any thread. Buffers may outlive the pool.
class BufferPool {
 public:
  explicit BufferPool(std::uint64_t keep_bytes);

  // A buffer of exactly `bytes` (its memory may be up to a quarter larger). Its content is
  // whatever was there. resource_exhausted when memory is short.
  Expected<Buffer> take(std::uint64_t bytes);

  std::uint64_t kept_bytes() const;  // idle, waiting for the next take
  std::uint64_t live_bytes() const;  // in buffers that are in use

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace troupe
