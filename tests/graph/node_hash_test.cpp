#include "graph/node_hash.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <set>
#include <utility>
#include <vector>

namespace troupe {
namespace {

std::uint64_t hash_of(const std::vector<std::int32_t>& values) {
  NodeDef node{.name = "c", .op = "Const"};
  node.attrs["value"] = Tensor::of<std::int32_t>({std::int64_t(values.size())}, values);
  return hash_of_computation(node);
}

}  // namespace

// Large constants are hashed in chains that meet at the end; what is left over goes on alone.
TEST_CASE("every element of a constant is in its hash, and its place") {
  for (int size : {3, 1023, 1024, 1027, 1033}) {
    CAPTURE(size);
    std::vector<std::int32_t> values(size);
    for (int i = 0; i < size; ++i) values[i] = i;
    std::set<std::uint64_t> seen{hash_of(values)};
    for (int i = 0; i < size; ++i) {
      values[i] += 1 << 20;
      CHECK(seen.insert(hash_of(values)).second);
      values[i] -= 1 << 20;
      if (i + 8 >= size) continue;
      for (int distance : {1, 2, 8}) {  // in one word, in two chains, in one chain
        std::swap(values[i], values[i + distance]);
        CHECK(seen.insert(hash_of(values)).second);
        std::swap(values[i], values[i + distance]);
      }
    }
  }
}

}  // namespace troupe
