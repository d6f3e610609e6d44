// Counts what operator new hands out in this test program: a measure of work that no clock is asked
// for.
#pragma once

#include <cstdint>

namespace troupe::test {

std::uint64_t allocated_bytes();     // since the program began
std::uint64_t take_largest_block();  // since the last call

}  // namespace troupe::test
