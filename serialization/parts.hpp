// Messages longer than a frame of a control connection: split into parts by the sender, joined by
// the receiver. Parts are small, so that messages sent between them do not wait for long: 1 s at
// 1 Mbit/s.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// A message is sent whole up to this size, a bulk one up to the size of a part. A longer one is
// sent in parts of this size, of which the last may be smaller.
inline constexpr std::size_t kWholeMessage = std::size_t{1} << 20;
inline constexpr std::size_t kMessagePart = std::size_t{128} << 10;
// The longest message: from the master, whose graphs may have large constants; and from a worker.
inline constexpr std::uint64_t kMasterMessage = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kWorkerMessage = std::uint64_t{64} << 20;

// The part of an encoded message that begins at `offset`. REQUIRES: offset < message.size().
MessagePart message_part(std::span<const std::byte> message, std::size_t offset, bool bulk = false);

// A lower bound of the message's length: the bytes of the constants of its graph. Used to refuse a
// message that is too long before memory is allocated to encode it.
std::uint64_t tensor_bytes(const WireMessage& message);

// Joins the parts from one peer, either of bulk messages or of others. They come in order and one
// message at a time; anything else is invalid_argument. Memory grows with the bytes that arrived,
// not with the announced length.
class PartJoiner {
 public:
  // The whole message after its last part, nullopt before. resource_exhausted if the announced
  // length is above `limit`. After an error no more messages of the peer may be used.
  Expected<std::optional<std::vector<std::byte>>> take(const MessagePart& part,
                                                       std::uint64_t limit);
  // Whether parts of a message have arrived, but not the last one.
  bool open() const { return total_ != 0; }

 private:
  std::uint64_t total_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace troupe
