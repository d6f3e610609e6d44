// Lists as bytes: the content of a tensor of type list after its header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/status.hpp"
#include "core/tensor.hpp"

namespace troupe {

// The bytes of an element without its contents. Large enough that decoded tensors take at most a
// few times the memory of the bytes.
inline constexpr std::size_t kListEntry = 80;

// One entry for each element, in order, each followed by the element's contents: nothing for an
// element without a value and for zeros that take no memory, the encoding of strings.hpp for a
// string tensor, and the entries of a nested list.
//
// REQUIRES: a list with elements in host memory. invalid_argument: lists are nested too deep
// (core/list.hpp). resource_exhausted: no memory for the bytes.
Expected<Buffer> encode_list(const Tensor& list);

// Decodes untrusted bytes. invalid_argument if they are not a list.
Expected<Tensor> decode_list(std::span<const std::byte> bytes);

}  // namespace troupe
