// Messages longer than a frame of a control connection: split into parts by the sender, joined by
// the receiver. Parts are small, so that messages sent between them do not wait for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// A message up to this size is sent whole, a longer one in parts of at most this size.
inline constexpr std::size_t kMessagePart = std::size_t{1} << 20;
// The longest message: from the master, whose graphs may have large constants; and from a worker.
inline constexpr std::uint64_t kMasterMessage = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kWorkerMessage = std::uint64_t{64} << 20;

// The part of an encoded message that begins at `offset`. REQUIRES: offset < message.size().
MessagePart message_part(std::span<const std::byte> message, std::size_t offset);

// A lower bound of the message's length: the bytes of the constants of its graph. Used to refuse a
// message that is too long before memory is allocated to encode it.
std::uint64_t tensor_bytes(const WireMessage& message);

// Joins the parts from one peer. Parts come in order and one message at a time; anything else is
// invalid_argument. Memory grows with the bytes that arrived, not with the announced length.
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
