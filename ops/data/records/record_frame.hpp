// The frames of TFRecord files, as functions of bytes:
//
//   u64  length of the record
//   u32  checksum of these 8 bytes
//        the record
//   u32  checksum of the record
//
// Numbers are little-endian. A checksum is a CRC32C, rotated, with a constant added.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace troupe {

inline constexpr std::size_t kRecordHead = 12, kRecordTail = 4;

// Of bytes that come in parts.
class RecordChecksum {
 public:
  void add(std::string_view part);
  std::uint32_t value() const;

 private:
  std::uint32_t crc_ = ~0u;
};
std::uint32_t record_checksum(std::string_view bytes);
// The length in the first bytes of a frame; nullopt if their checksum does not match.
// REQUIRES: kRecordHead bytes.
std::optional<std::uint64_t> record_length(std::string_view head);
// Whether `tail` has the checksum of the record. REQUIRES: kRecordTail bytes.
bool ends_record(const RecordChecksum& record, std::string_view tail);
std::string record_head(std::uint64_t length);
std::string record_tail(std::string_view record);

}  // namespace troupe
