// What a value is before a run: its dtype, and what is known of its shape.
#pragma once

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace troupe {

// Of an argument or a result of a function: what its body, or whoever calls it, may rely on.
struct ValueType {
  DType dtype = DType::invalid;
  PartialShape shape;
};

}  // namespace troupe
