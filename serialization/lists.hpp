// Lists as bytes: what stands behind a tensor header when the tensor's type is list.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// What an element takes beside its contents. Whoever makes tensors of bytes from outside takes at
// most a few times these bytes.
inline constexpr std::size_t kListEntry = 80;

// One entry for each element, in order, and behind it the element's contents: none for an entry
// without a value and for zeros that take no memory, those of a string tensor as in strings.hpp,
// and the entries of a list in a list.
//
// REQUIRES: a list, whose elements are in host memory. invalid_argument: lists in lists are too
// deep (core/list.hpp). resource_exhausted: there is no memory for the bytes.
Expected<Buffer> encode_list(const Tensor& list);

// The list in bytes that anybody may have sent. invalid_argument when they are none.
Expected<Tensor> decode_list(std::span<const std::byte> bytes);

}  // namespace troupe
