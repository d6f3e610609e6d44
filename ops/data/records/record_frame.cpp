#include "ops/data/records/record_frame.hpp"

#include <isa-l/crc.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace troupe {

namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they are");

template <class T>
T load_number(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void RecordChecksum::add(std::string_view bytes) {
  constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;  // ISA-L counts in an int
  while (!bytes.empty()) {
    const std::string_view part = bytes.substr(0, kMostAtOnce);
    // It only reads, whatever its signature says.
    auto* data = reinterpret_cast<unsigned char*>(const_cast<char*>(part.data()));
    crc_ = crc32_iscsi(data, int(part.size()), crc_);
    bytes.remove_prefix(part.size());
  }
}

std::uint32_t RecordChecksum::value() const { return std::rotr(~crc_, 15) + 0xa282ead8u; }

std::uint32_t record_checksum(std::string_view bytes) {
  RecordChecksum checksum;
  checksum.add(bytes);
  return checksum.value();
}

std::optional<std::uint64_t> record_length(std::string_view head) {
  if (load_number<std::uint32_t>(head.substr(8)) != record_checksum(head.substr(0, 8)))
    return std::nullopt;
  return load_number<std::uint64_t>(head);
}

bool ends_record(const RecordChecksum& record, std::string_view tail) {
  return load_number<std::uint32_t>(tail) == record.value();
}

std::string record_head(std::uint64_t length) {
  std::string out;
  append_number(out, length);
  append_number(out, record_checksum(out));
  return out;
}

std::string record_tail(std::string_view record) {
  std::string out;
  append_number(out, record_checksum(record));
  return out;
}

}  // namespace troupe
