// What a queue is: its kind, its capacity, and what its elements are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"
#include "core/tensor.hpp"

namespace troupe {

struct QueueSpec {
  enum class Order : std::uint8_t { fifo, shuffle, priority };

  std::string name;
  std::int64_t capacity = 0;         // >= 1
  std::vector<DType> dtypes;         // of the components of an element
  std::vector<PartialShape> shapes;  // empty, or one a component
  Order order = Order::fifo;
  bool padded = false;                 // batches of elements of several shapes
  std::int64_t min_after_dequeue = 0;  // shuffle: so many stay while the queue is open
  std::uint64_t seed = 0;              // shuffle: what is drawn by

  // invalid_argument unless there is such a queue.
  Status check() const;
  // "queue 'q' of capacity 2 (f32[2], i64)", for errors.
  std::string text() const;
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

using QueueElement = std::vector<Tensor>;

// invalid_argument unless the queue can hold it.
Status check_element(const QueueSpec& spec, const QueueElement& element);
// Its place in a PriorityQueue: the lowest goes first. REQUIRES: check_element().
std::int64_t priority_of(const QueueElement& element);

// The elements that a batch is made of, along dimension 0; each has buffers of its own.
// invalid_argument when its components are not batches of as many, or hold what has no bytes.
Expected<std::vector<QueueElement>> elements_of(const QueueSpec& spec, const QueueElement& batch);
// Whether elements of the queue can be stacked: their shapes are known, or it pads them.
Status check_batches(const QueueSpec& spec);
// Elements of the queue, stacked and, where it pads, filled up at the end of each dimension. Of
// none, an empty batch. REQUIRES: check_batches().
Expected<QueueElement> batch_of(const QueueSpec& spec,
                                std::span<const QueueElement* const> elements);

}  // namespace troupe
