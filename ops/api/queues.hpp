// Queues (paper, 4.6) with numbers that are known when the graph is built. The handles, and what
// one element at a time takes, are generated: fifo_queue, random_shuffle_queue, padding_fifo_queue,
// priority_queue; enqueue, enqueue_many, dequeue, queue_size, queue_close.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/api/generated.hpp"

namespace troupe {

// `n` elements of the queue, each component stacked along a new dimension 0: values of dtypes
// `types`, of shapes [n, ...] where `options.shapes` gives those of an element. Throws Error for a
// negative n. Runs fail as DequeueMany says, with the node and line of this call.
std::vector<Output> dequeue_many(Output queue, std::int64_t n, std::vector<DType> types,
                                 const DequeueManyOptions& options = {}, Site site = Site::here());
// The same; the last elements of a closed queue may be fewer.
std::vector<Output> dequeue_up_to(Output queue, std::int64_t n, std::vector<DType> types,
                                  const DequeueUpToOptions& options = {}, Site site = Site::here());

}  // namespace troupe
