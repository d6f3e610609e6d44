// Whether this machine can hold a number of workers.
#pragma once

#include <cstdint>
#include <optional>

#include "core/status.hpp"

namespace troupe {

// What more processes can have. None: nothing bounds it.
struct WorkerRoom {
  std::optional<std::uint64_t> memory;       // bytes, of all together
  std::optional<std::uint64_t> threads;      // of all together
  std::optional<std::uint64_t> descriptors;  // of each
  static WorkerRoom here();
};

// resource_exhausted if so many worker processes on one machine need more before they compute
// anything, with what they need at the least and how many there can be. What their graphs and
// tensors need comes on top: who is not refused may still be too many.
Status check_room(int workers, const WorkerRoom& room);

}  // namespace troupe
