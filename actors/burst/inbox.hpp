// What a step receives from outside, and the lock-free list that holds it until the burst looks.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// Iteration numbers of the enclosing loops, the outermost first. Empty outside loops.
class Tag {
 public:
  static constexpr int kMaxDepth = 8;

  Tag() = default;
  // REQUIRES: at most kMaxDepth numbers.
  explicit Tag(std::span<const std::int64_t> iterations) {
    for (std::int64_t i : iterations) push(i);
  }
  int depth() const { return depth_; }
  std::int64_t operator[](int i) const { return iterations_[std::size_t(i)]; }
  std::span<const std::int64_t> iterations() const {
    return {iterations_.data(), std::size_t(depth_)};
  }
  void push(std::int64_t iteration) {
    TROUPE_CHECK(depth_ < kMaxDepth, "loops nest too deep");
    iterations_[std::size_t(depth_++)] = iteration;
  }
  friend bool operator==(const Tag& a, const Tag& b) {
    return a.depth_ == b.depth_ && a.iterations_ == b.iterations_;
  }

 private:
  std::array<std::int64_t, kMaxDepth> iterations_{};
  std::int32_t depth_ = 0;
};

// A tensor of another partition, in host memory. `dead`: the branch that makes it was not taken.
struct TensorArrival {
  ChannelId channel = 0;
  Tag tag;
  Tensor tensor;
  bool dead = false;
};
// The answer to a request that a burst handed back: the outputs of all its items, in order.
struct RequestAnswer {
  std::uint32_t request = 0;
  Status status;
  std::vector<Tensor> outputs;
};
// The answer to a wait that a burst handed back: the status from Device::on_complete.
struct WaitAnswer {
  std::uint32_t wait = 0;
  Status status;
};
// The step is to end: its result is no longer needed, or it failed elsewhere.
struct AbortStep {
  Status status;
};
using Arrival = std::variant<TensorArrival, RequestAnswer, WaitAnswer, AbortStep>;

// A list to which any thread may push and which one thread takes as a whole, oldest first.
// Lock-free: a push is one compare-and-swap, empty() one load.
class Inbox {
 public:
  struct Node {
    Arrival arrival;
    Node* next = nullptr;
  };
  Inbox() = default;
  ~Inbox() { discard(take()); }
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;

  void push(Arrival arrival) {
    Node* node = new Node{std::move(arrival), head_.load(std::memory_order_relaxed)};
    while (!head_.compare_exchange_weak(node->next, node, std::memory_order_release,
                                        std::memory_order_relaxed)) {
    }
  }
  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }
  // Everything pushed so far, oldest first; the caller deletes the nodes. One thread at a time.
  Node* take();
  static void discard(Node* list);

 private:
  std::atomic<Node*> head_{nullptr};
};

}  // namespace troupe
