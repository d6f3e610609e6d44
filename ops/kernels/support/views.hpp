// Tensors seen through other strides: what slicing, padding and turning have in common.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "ops/kernels/support/moves.hpp"

namespace troupe {

// The element at `index`.
std::int64_t offset_of(const Strides& strides, const std::vector<std::int64_t>& index);
// invalid_argument: a list that has no entry for each dimension.
Status wrong_length(std::string_view what, std::size_t n, int rank);

// strided_copy() and fill_tensor(), of a number as each type has it, where the tensors are: on GPUs
// in kernels that are registered as cuda::moving.
Status copy_strided(const KernelContext& ctx, DType dtype, const Shape& dims, const void* from,
                    const Strides& a, void* to, const Strides& b);
Status fill_with(const KernelContext& ctx, double value, Tensor& y);

// Output = input seen through other strides, from an element offset on.
Status view_copy(KernelContext& ctx, const Shape& shape, const Strides& strides,
                 std::int64_t offset);
// Output = `value` everywhere in `shape`, but for input 0 from element `offset` on.
Status place(KernelContext& ctx, const Shape& shape, std::int64_t offset, double value);
// Output = input 0 with input 1 added to the part of it that these strides walk over from an
// element offset on. Of input 0 itself where it may be overwritten.
Status add_to_view(KernelContext& ctx, const Strides& strides, std::int64_t offset);
// Input 0 where it may be overwritten, else a copy.
Expected<Tensor> own_first_input(const KernelContext& ctx);

}  // namespace troupe
