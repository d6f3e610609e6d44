// Messages between processes as bytes: the contents of frames, hellos and tensor headers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "core/tensor_tag.hpp"
#include "serialization/join.hpp"
#include "serialization/messages.hpp"
#include "serialization/tensor_tag.hpp"

namespace troupe {

// A message as words (detail/words.hpp), beginning with its number, for a control connection.
// REQUIRES: tensors in host memory, a graph in LoadGraph, no single text of a graph of 2^29 bytes.
std::vector<std::byte> encode(const WireMessage& message);

// Decodes untrusted bytes. invalid_argument for bytes that are not a message, resource_exhausted
// if there is no memory; memory stays in proportion to the bytes. Shapes, byte counts and device
// names of the result are valid, and the message's own check() has passed. A graph must still go
// through import_graph().
Expected<WireMessage> decode(std::span<const std::byte> bytes);

// Whether bytes begin as those of a message of this type do. Of a graph, decoding takes long.
bool begins_as(std::uint64_t number, std::span<const std::byte> bytes);
template <class M>
bool begins_as(std::span<const std::byte> bytes) {
  return begins_as(detail::number_of<M>(), bytes);
}

// The hello. invalid_argument if its texts do not fit into kMaxJoin bytes.
inline constexpr std::size_t kMaxJoin = 3072;
Expected<std::string> encode_join(const Join& join);
Expected<Join> decode_join(std::string_view bytes);

// The tag of a tensor, little-endian:
//   0  u8 version = 1    1  u8 kind    2  u8 dtype    3  u8 dead (0, 1)
//   4  u8 rank           5  u8 count of iteration numbers    6  u16 zero
//   8  u32 partition    12  u32 index
//  16  u64 compiled     24  u64 view of the attempt    32  u64 number of the attempt
//  40  i64 per dimension, then i64 per iteration number, outermost first
// The number of bytes used. REQUIRES: at most 8 iteration numbers.
std::size_t encode_tag(const TensorTag& tag, std::span<std::byte, kMaxTensorTag> out);
// Accepts a missing dtype only for a dead tensor; any other must have a valid one.
Expected<TensorTag> decode_tag(std::span<const std::byte> bytes);

}  // namespace troupe
