// Elementwise ops on complex numbers. Most of what they do is a call of the C library, so they are
// compiled once and not for every level of instructions: the bits are the same at all of them.
#pragma once

#include <string_view>

#include "ops/kernels/support/elementwise.hpp"

namespace troupe {

struct ComplexLoop {
  int inputs = 0;
  ElementTypes types;
};

// How `op` computes elements of type `dtype`; unimplemented where there is no such loop. Beside ops
// there are the parts of casts: "Widen" of a real number to a complex one, "Convert" of a complex
// one to the other complex type, and "NonZero".
Expected<ComplexLoop> complex_loop(std::string_view op, DType dtype);

}  // namespace troupe
