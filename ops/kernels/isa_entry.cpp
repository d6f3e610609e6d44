// The second of the two symbols that an ISA object exports; cmake/collect_ops.cmake writes the
// first. Eigen keeps the cache sizes per object, so each object has to be told.
#include <Eigen/Core>
#include <cstdint>

extern "C" __attribute__((visibility("default"))) void troupe_set_cache_sizes(std::int64_t l1,
                                                                              std::int64_t l2,
                                                                              std::int64_t l3);
extern "C" void troupe_set_cache_sizes(std::int64_t l1, std::int64_t l2, std::int64_t l3) {
  Eigen::setCpuCacheSizes(l1, l2, l3);
}
