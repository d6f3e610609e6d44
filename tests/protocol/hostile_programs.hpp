// Programs that nobody means, drawn from seeds.
#pragma once

#include <vector>

#include "core/hash.hpp"
#include "core/status.hpp"
#include "graph/graph.hpp"

namespace troupe::test {

// Every node and function of a program says that it was made in this file.
inline constexpr const char* kHostileFile = "hostile.cpp";

class HostilePrograms {
 public:
  explicit HostilePrograms(std::uint64_t seed);

  // A valid program, or nodes and functions of no program, after a few changes. Those to its bytes,
  // of some, may change names and lines, too, or leave nothing that can be read.
  struct Drawn {
    Expected<GraphDef> graph;
    bool through_bytes = false;
  };
  Drawn draw(Random& random) const;

 private:
  std::vector<GraphDef> valid_;
};

}  // namespace troupe::test
