#pragma once

#include <cstddef>
#include <vector>

#include "serialization/message.hpp"

namespace troupe {

// A part of a message that is too long for one frame. The sender sends the parts in order; the
// receiver joins them to the message (serialization/parts.hpp). The parts of a bulk message and
// those of another one may come between each other.
struct MessagePart {
  std::uint64_t total = 0;   // bytes of the whole message
  std::uint64_t offset = 0;  // of `bytes` in it
  std::vector<std::byte> bytes;
  bool bulk = false;  // of a message with kBulk
};

template <>
struct MessageAt<19> {
  using Type = MessagePart;
  static constexpr Sender kSender = Sender::either;
  static constexpr Receiver kReceiver = Receiver::hub;
  static auto fields(auto& m) {
    auto& [total, offset, bytes, bulk] = m;
    return std::tie(total, offset, bulk, bytes);
  }
};

}  // namespace troupe
