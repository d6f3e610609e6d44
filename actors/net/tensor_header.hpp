// The header that is sent before a tensor's bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/check.hpp"
#include "core/tensor_tag.hpp"

namespace troupe {

// The byte count, and a tag of at most 256 bytes that the transport does not interpret: the
// attempt, channel, iterations, dtype and shape, as the layer above encodes them.
class TensorHeader {
 public:
  TensorHeader() = default;
  // REQUIRES: tag.size() <= kMaxTensorTag.
  TensorHeader(std::span<const std::byte> tag, std::uint64_t size) : bytes(size) { set_tag(tag); }

  void set_tag(std::span<const std::byte> tag) {
    TROUPE_CHECK(tag.size() <= kMaxTensorTag, "a tensor's tag is at most 256 bytes");
    tag_size_ = std::uint16_t(tag.size());
    if (!tag.empty()) std::memcpy(tag_.data(), tag.data(), tag.size());
  }
  std::span<const std::byte> tag() const { return {tag_.data(), tag_size_}; }

  std::uint64_t bytes = 0;

 private:
  std::uint16_t tag_size_ = 0;
  std::array<std::byte, kMaxTensorTag> tag_;  // first tag_size_ are set
};

}  // namespace troupe
