// The tag of a tensor on a data connection.
#pragma once

#include <cstdint>
#include <vector>

#include "core/dtype.hpp"
#include "core/ids.hpp"
#include "core/shape.hpp"

namespace troupe {

// Precedes a tensor on a data connection (at most kMaxTensorTag).
struct TensorTag {
  // A tensor of a channel, or a feed or fetch that is not inside its message.
  enum class Kind : std::uint8_t { channel = 0, feed = 1, fetch = 2 };
  Kind kind = Kind::channel;
  CompiledId compiled = 0;
  std::uint32_t partition = 0;  // receiving partition (channel, feed); sending one (fetch)
  AttemptId attempt;
  std::uint32_t index = 0;               // channel id, feed or fetch index
  std::vector<std::int64_t> iterations;  // at most 8
  DType dtype = DType::invalid;
  Shape shape;
  bool dead = false;
};

}  // namespace troupe
