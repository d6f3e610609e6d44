// Messages between processes as bytes: what stands in frames, hellos and tensor headers.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "serialization/join.hpp"
#include "serialization/messages.hpp"
#include "serialization/tensor_tag.hpp"

namespace troupe {

// A message as words (detail/words.hpp), its number first, for one frame of a control connection.
// REQUIRES: tensors in host memory, a graph in LoadGraph, no single text of a graph of 2^29 bytes.
std::vector<std::byte> encode(const WireMessage& message);

// The message in bytes that anybody may have sent. A value or invalid_argument, whatever they are;
// nothing is allocated out of proportion to their number. Enumerations, shapes, byte counts and
// names of devices are valid afterwards, and so is what a message's own check says; a graph still
// goes through import_graph.
Expected<WireMessage> decode(std::span<const std::byte> bytes);

// The hello. invalid_argument when its texts do not fit kMaxJoin bytes.
inline constexpr std::size_t kMaxJoin = 3072;
Expected<std::string> encode_join(const Join& join);
Expected<Join> decode_join(std::string_view bytes);

// The tag of a tensor, little-endian:
//   0  u8 version = 1    1  u8 kind    2  u8 dtype    3  u8 dead (0, 1)
//   4  u8 rank           5  u8 count of iteration numbers    6  u16 zero
//   8  u32 partition    12  u32 index
//  16  u64 compiled     24  u64 view of the attempt    32  u64 number of the attempt
//  40  i64 per dimension, then i64 per iteration number, outermost first
inline constexpr std::size_t kTensorTagBytes = 256;
// The number of bytes used. REQUIRES: at most 8 iteration numbers.
std::size_t encode_tag(const TensorTag& tag, std::span<std::byte, kTensorTagBytes> out);
// A dead tensor may have no dtype; any other has one that a tensor can have.
Expected<TensorTag> decode_tag(std::span<const std::byte> bytes);

}  // namespace troupe
