// What calls of recursive functions save.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/kernel.hpp"

namespace troupe::burst {

// One step's open calls, the innermost last; used only by the burst. A function runs in the counts
// and slots of its frame. What a call interrupts there is saved in three arrays, each a stack,
// until it returns: once they are large enough, a call allocates nothing.
struct CallStack {
  struct Call {
    std::uint32_t node = 0;   // the call
    std::uint32_t frame = 0;  // of the function
    std::uint32_t ready = 0;  // ready nodes that wait for its end
    std::size_t first_word = 0, first_slot = 0, first_draw = 0;
  };
  std::vector<Call> calls;
  std::vector<std::uint32_t> words;  // ready nodes; for calls from inside: counts, readers, flags
  std::vector<std::pair<std::uint32_t, Slot>> slots;
  std::vector<std::uint64_t> draws;
  static constexpr std::size_t kKeptWords = std::size_t{1} << 20;  // kept between steps

  // Counts the memory of saved slots and call records, each buffer once: weights are passed from
  // call to call. Small tensors count only as their slots.
  void hold(const Tensor& tensor) {
    if (is_large(tensor) && ++held_[tensor.raw()] == 1) held_bytes_ += tensor.bytes();
  }
  void let_go(const Tensor& tensor) {
    if (!is_large(tensor)) return;
    const auto at = held_.find(tensor.raw());
    if (at == held_.end() || --at->second > 0) return;
    held_bytes_ -= tensor.bytes();
    held_.erase(at);
  }
  // All calls are over.
  void let_all_go() {
    held_.clear();
    held_bytes_ = 0;
  }
  std::uint64_t bytes() const {
    return held_bytes_ + calls.size() * sizeof(Call) + words.size() * sizeof words[0] +
           slots.size() * sizeof slots[0] + draws.size() * sizeof draws[0];
  }

 private:
  static bool is_large(const Tensor& tensor) {
    constexpr std::size_t kLarge = 4096;
    return tensor.defined() && tensor.dtype() != DType::list && tensor.bytes() >= kLarge;
  }

  std::unordered_map<const void*, std::uint32_t> held_;  // references by buffer
  std::uint64_t held_bytes_ = 0;
};

}  // namespace troupe::burst
