#include "ops/api/queues.hpp"

#include "ops/api/constant.hpp"
#include "ops/api/node.hpp"

namespace troupe {

std::vector<Output> dequeue_many(Output queue, std::int64_t n, std::vector<DType> types,
                                 const DequeueManyOptions& options, Site site) {
  check_given("dequeue_many: queue", queue, site);
  const Output count = constant(queue.graph(), n, site);
  return dequeue_many(queue, count, std::move(types), options, site);
}

std::vector<Output> dequeue_up_to(Output queue, std::int64_t n, std::vector<DType> types,
                                  const DequeueUpToOptions& options, Site site) {
  check_given("dequeue_up_to: queue", queue, site);
  const Output count = constant(queue.graph(), n, site);
  return dequeue_up_to(queue, count, std::move(types), options, site);
}

}  // namespace troupe
