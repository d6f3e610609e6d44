// The largest block that operator new of this test program was asked for.
#pragma once

#include <cstdint>

namespace troupe::test {

// Since the last call.
std::uint64_t take_largest_block();

}  // namespace troupe::test
