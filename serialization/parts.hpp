// Messages longer than a frame of a control connection: cut into parts by the sender, joined by the
// receiver. Parts are small enough that what is sent between them does not wait for long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/status.hpp"
#include "serialization/messages.hpp"

namespace troupe {

// A message up to this is sent whole, a longer one in parts of this size, the last one shorter.
inline constexpr std::size_t kMessagePart = std::size_t{1} << 20;
// The longest message there is: from the master, whose graphs may hold large constants; and from a
// worker.
inline constexpr std::uint64_t kMasterMessage = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kWorkerMessage = std::uint64_t{64} << 20;

// The part of an encoded message that begins at `offset`. REQUIRES: offset < message.size().
MessagePart message_part(std::span<const std::byte> message, std::size_t offset);

// About how many bytes the message will have, from below: what its tensors hold. Says that a
// message is too long before memory is taken to encode it.
std::uint64_t tensor_bytes(const WireMessage& message);

// What one peer's parts amount to. Parts come in order and one message at a time; anything else is
// invalid_argument. Memory follows the bytes that arrived, not the length that is claimed.
class PartJoiner {
 public:
  // The whole message's bytes with its last part, nothing before. resource_exhausted when the
  // message claims more than `limit`. After an error the peer is not to be listened to any more.
  Expected<std::optional<std::vector<std::byte>>> take(const MessagePart& part,
                                                       std::uint64_t limit);
  // Parts of a message have arrived, its last has not.
  bool open() const { return total_ != 0; }

 private:
  std::uint64_t total_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace troupe
