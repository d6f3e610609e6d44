// String tensors as bytes: the content of a tensor of type string after its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// The length of each string (u64, little-endian), then the contents, one after the other. So a
// tensor without elements has no bytes, and one of empty strings has eight for each.

// The length of the encoding. REQUIRES: a string tensor.
std::uint64_t encoded_strings_size(const Tensor& strings);
// resource_exhausted if there is no memory for it.
Expected<Buffer> encode_strings(const Tensor& strings);

// Whether a tensor of that shape can have that many bytes: a check before the bytes have arrived.
Status check_strings_size(const Shape& shape, std::uint64_t bytes);
// Decodes untrusted bytes. invalid_argument if the lengths do not add up, which is checked before
// memory is allocated: at most four times the bytes, and the heap's overhead for long strings.
Expected<Tensor> decode_strings(const Shape& shape, std::span<const std::byte> bytes);

}  // namespace troupe
