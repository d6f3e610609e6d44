// What calls of functions that call themselves keep aside.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "troupe/devices/kernel.hpp"

namespace troupe {

// One step's open calls, the innermost last; a burst alone touches it. The function runs in the
// counts and slots of its frame; what a call interrupts there lies in the four arrays, each a
// stack, until it returns: nothing is allocated for a call once they are large enough.
struct CallStack {
  struct Call {
    std::uint32_t node = 0;   // the call
    std::uint32_t frame = 0;  // of the function
    std::uint32_t ready = 0;  // nodes that wait for its end
    std::size_t first_word = 0, first_slot = 0, first_draw = 0;
    std::uint64_t bytes = 0;  // of tensors that nobody else holds
  };
  std::vector<Call> calls;
  std::vector<std::uint32_t> words;  // what is ready; of calls from inside counts, readers, flags
  std::vector<std::pair<std::uint32_t, Slot>> slots;
  std::vector<std::uint64_t> draws;
  std::uint64_t tensor_bytes = 0;
  static constexpr std::size_t kKeptWords = std::size_t{1} << 20;  // from one step to the next

  std::uint64_t bytes() const {
    return tensor_bytes + calls.size() * sizeof(Call) + words.size() * sizeof words[0] +
           slots.size() * sizeof slots[0] + draws.size() * sizeof draws[0];
  }
};

}  // namespace troupe
