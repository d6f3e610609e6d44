#include "serialization/parts.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "serialization/strings.hpp"

namespace troupe {

MessagePart message_part(std::span<const std::byte> message, std::size_t offset, bool bulk) {
  auto bytes = message.subspan(offset, std::min(kMessagePart, message.size() - offset));
  return {message.size(), offset, {bytes.begin(), bytes.end()}, bulk};
}

std::uint64_t tensor_bytes(const WireMessage& message) {
  auto* load = std::get_if<LoadGraph>(&message);
  if (!load || !load->graph) return 0;
  std::uint64_t bytes = 0;
  for (const NodeDef& node : load->graph->nodes)
    for (const auto& [name, attr] : node.attrs)
      if (auto* tensor = attr.get<Tensor>()) {
        if (!tensor->defined()) continue;
        bytes += tensor->dtype() == DType::string ? encoded_strings_size(*tensor) : tensor->bytes();
      }
  return bytes;
}

Expected<std::optional<std::vector<std::byte>>> PartJoiner::take(const MessagePart& part,
                                                                 std::uint64_t limit) try {
  if (total_ == 0) {
    if (part.total > limit)
      return resource_exhausted("a message of " + std::to_string(part.total) + " bytes where " +
                                std::to_string(limit) + " are allowed");
    if (part.total <= kMessagePart)
      return invalid_argument("a message of " + std::to_string(part.total) + " bytes in parts");
    total_ = part.total;
  }
  if (part.total != total_ || part.offset != bytes_.size())
    return invalid_argument("a part at " + std::to_string(part.offset) + " of " +
                            std::to_string(part.total) + " where " + std::to_string(bytes_.size()) +
                            " of " + std::to_string(total_) + " is next");
  std::uint64_t size = std::min<std::uint64_t>(kMessagePart, total_ - part.offset);
  if (part.bytes.size() != size)
    return invalid_argument("a part of " + std::to_string(part.bytes.size()) + " bytes, not " +
                            std::to_string(size));
  bytes_.insert(bytes_.end(), part.bytes.begin(), part.bytes.end());
  if (bytes_.size() < total_) return std::optional<std::vector<std::byte>>{};
  total_ = 0;
  return std::optional(std::exchange(bytes_, {}));
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a message of " + std::to_string(part.total) + " bytes");
}

}  // namespace troupe
