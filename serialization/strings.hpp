// String tensors as bytes: what stands behind a tensor header when the tensor's type is string.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// A u64 per string, little-endian, its length; then the contents, one after the other. So a tensor
// without elements has no bytes, and one of empty strings has eight for each.

// The number of these bytes. REQUIRES: a string tensor.
std::uint64_t encoded_strings_size(const Tensor& strings);
// resource_exhausted when there is no memory for them.
Expected<Buffer> encode_strings(const Tensor& strings);

// Whether a tensor of that shape can have that many bytes: what can be said before they are there.
Status check_strings_size(const Shape& shape, std::uint64_t bytes);
// The tensor in bytes that anybody may have sent. invalid_argument when the lengths do not add up,
// found before memory is taken; that is at most four times the bytes and what the heap adds for
// long strings.
Expected<Tensor> decode_strings(const Shape& shape, std::span<const std::byte> bytes);

}  // namespace troupe
