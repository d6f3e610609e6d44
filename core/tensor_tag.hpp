// The size of what precedes a tensor on a data connection.
#pragma once

#include <cstddef>

namespace troupe {

// Bytes of a tag: serialization writes it, the transport carries it without looking at it.
inline constexpr std::size_t kMaxTensorTag = 256;

}  // namespace troupe
