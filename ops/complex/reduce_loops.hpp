// Sums, means and products of complex numbers, compiled once (element_loops.hpp says why).
#pragma once

#include <span>

#include "ops/kernels/support/reduce.hpp"

namespace troupe {

std::span<const ReduceLoops> complex_sums();
std::span<const ReduceLoops> complex_means();
std::span<const ReduceLoops> complex_products();

}  // namespace troupe
