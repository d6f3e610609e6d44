// Nests of loops over two or three devices, drawn from seeds.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tests/protocol/spread_step.hpp"

namespace troupe::test::loops {

struct DrawnLoop {
  std::uint64_t seed = 0;
  Make make;  // the same program on any devices
  Surroundings world;
  // What is in it: "2 frames", "3 devices", "a branch", "a queue is filled", ...
  std::set<std::string> has;
};

// Up to three loops in each other, with as many iterations as constants, variables, counters of
// loops around them or their own values say; branches, calls of a function that calls itself,
// queues, variables and Print in their bodies; the outermost one on a branch, perhaps. Each body
// prints its counter, "loop 0", "loop 1" and so on.
DrawnLoop drawn_loop(std::uint64_t seed);

}  // namespace troupe::test::loops
