// The description of a queue: its order, capacity and elements.
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
  std::vector<PartialShape> shapes;  // empty, or one for each component
  Order order = Order::fifo;
  bool padded = false;                 // batches pad elements of different shapes
  std::int64_t min_after_dequeue = 0;  // shuffle: elements that stay while the queue is open
  std::uint64_t seed = 0;              // shuffle: of the draws

  // invalid_argument if the description is not valid.
  Status check() const;
  // "queue 'q' of capacity 2 (f32[2], i64)", for errors.
  std::string text() const;
  friend bool operator==(const QueueSpec&, const QueueSpec&) = default;
};

using QueueElement = std::vector<Tensor>;

// invalid_argument if the queue cannot hold it.
Status check_element(const QueueSpec& spec, const QueueElement& element);
// Its priority in a PriorityQueue; the lowest leaves first. REQUIRES: check_element().
std::int64_t priority_of(const QueueElement& element);

// The elements of a batch, along dimension 0, each with its own buffers. invalid_argument if its
// components are not batches of equal size, or have a dtype without bytes.
Expected<std::vector<QueueElement>> elements_of(const QueueSpec& spec, const QueueElement& batch);
// invalid_argument unless elements can be stacked: their shapes are known, or the queue pads them.
Status check_batches(const QueueSpec& spec);
// The elements stacked and, if the queue pads, padded at the end of each dimension. Without
// elements, an empty batch. REQUIRES: check_batches().
Expected<QueueElement> batch_of(const QueueSpec& spec,
                                std::span<const QueueElement* const> elements);

}  // namespace troupe
