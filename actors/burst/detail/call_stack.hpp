// What calls of functions that call themselves keep aside.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "devices/kernel.hpp"

namespace troupe::burst {

// One step's open calls, the innermost last; a burst alone touches it. The function runs in the
// counts and slots of its frame; what a call interrupts there lies in three arrays, each a stack,
// until it returns: nothing is allocated for a call once they are large enough.
struct CallStack {
  struct Call {
    std::uint32_t node = 0;   // the call
    std::uint32_t frame = 0;  // of the function
    std::uint32_t ready = 0;  // nodes that wait for its end
    std::size_t first_word = 0, first_slot = 0, first_draw = 0;
  };
  std::vector<Call> calls;
  std::vector<std::uint32_t> words;  // what is ready; of calls from inside counts, readers, flags
  std::vector<std::pair<std::uint32_t, Slot>> slots;
  std::vector<std::uint64_t> draws;
  static constexpr std::size_t kKeptWords = std::size_t{1} << 20;  // from one step to the next

  // Memory that slots aside and records of calls hold, each buffer once: weights are handed on from
  // call to call. What is small counts as its slot.
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

  std::unordered_map<const void*, std::uint32_t> held_;  // how often
  std::uint64_t held_bytes_ = 0;
};

}  // namespace troupe::burst
