// Limits how long a burst keeps its lane.
#pragma once

#include <cstdint>

#include "core/trace.hpp"

namespace troupe::burst {

// One burst's turn on its lane. A burst with loops or calls leaves the lane to others after 2 ms:
// at the beginning of an iteration or call it asks is_over(), and yields if so. The clock is read
// once for many nodes.
class LaneTurn {
 public:
  // A burst begins.
  void begin() {
    yields_ = false;
    began_ns_ = 0;
  }
  // `nodes` nodes run next. The turn begins when the clock is first read.
  bool is_over(std::uint32_t nodes) {
    nodes_ += nodes;
    if (nodes_ < kNodesPerLook) return false;
    nodes_ = 0;
    const std::int64_t now = Trace::now_ns();
    if (began_ns_ == 0) began_ns_ = now;
    return now - began_ns_ > kTurnNs;
  }
  // The burst ends although nodes are ready.
  void yield() { yields_ = true; }
  bool yields() const { return yields_; }

 private:
  static constexpr std::int64_t kTurnNs = 2'000'000;
  static constexpr std::uint32_t kNodesPerLook = 64;

  bool yields_ = false;
  std::uint32_t nodes_ = 0;  // since the clock was read
  std::int64_t began_ns_ = 0;
};

}  // namespace troupe::burst
