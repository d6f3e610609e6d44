// Matrix products of complex numbers as products of real ones. Row-major, a complex matrix [m, k]
// is a real one [m, 2k]: its rows are re, im, re, im, ... With each element of the other factor as
// the matrix of what it multiplies by,
//
//    re  im
//   -im  re
//
// which makes [k, n] a real [2k, 2n], the product is [m, 2n], the complex product as it is stored.
#pragma once

#include "devices/kernel.hpp"

namespace troupe {

// The matrices in the last two dimensions of the first factor, or their transposes, as real ones.
Expected<Tensor> complex_left(const KernelContext& ctx, const Tensor& a, bool transposed);
// The same of the second factor.
Expected<Tensor> complex_right(const KernelContext& ctx, const Tensor& b, bool transposed);
// The complex matrices that are stored as the real ones `product`.
Tensor complex_product(const Tensor& product);

}  // namespace troupe
