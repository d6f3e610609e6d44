#include "serialization/tf_record.hpp"

#include <bit>
#include <cstring>
#include <new>

#include "serialization/detail/crc32c.hpp"

namespace troupe {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they are");

constexpr std::size_t kHead = 12, kTail = 4;

template <class T>
void store(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::string at(const std::string& path, std::uint64_t offset) {
  return "'" + path + "', record at byte " + std::to_string(offset) + ": ";
}

}  // namespace

std::uint32_t masked_crc32c(std::span<const std::byte> bytes) {
  return std::rotr(detail::crc32c(bytes), 15) + 0xa282ead8u;
}

void append_tf_record(std::vector<std::byte>& out, std::span<const std::byte> record) {
  out.reserve(out.size() + kHead + record.size() + kTail);
  const std::uint64_t length = record.size();
  store(out, length);
  store(out, masked_crc32c(std::as_bytes(std::span(&length, 1))));
  out.insert(out.end(), record.begin(), record.end());
  store(out, masked_crc32c(record));
}

Status TfRecordWriter::write(std::span<const std::byte> record) try {
  frame_.clear();
  append_tf_record(frame_, record);
  return file_.append(frame_);
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory for a record of " + std::to_string(record.size()) +
                            " bytes");
}

Expected<std::optional<std::span<const std::byte>>> TfRecordReader::next() {
  TROUPE_TRY(failed_);
  if (at_ == file_.size()) return std::optional<std::span<const std::byte>>();
  failed_ = read();
  TROUPE_TRY(failed_);
  at_ += kHead + record_.size();
  record_.resize(record_.size() - kTail);
  return std::optional(std::span<const std::byte>(record_));
}

// Reads the record and the checksum after it into record_.
Status TfRecordReader::read() try {
  const std::uint64_t left = file_.size() - at_;
  std::byte head[kHead];
  if (left < kHead)
    return data_loss(at(path_, at_) + "the file ends after " + std::to_string(left) +
                     " of the 12 bytes before it");
  TROUPE_TRY(file_.read_at(at_, head));
  const auto length = load<std::uint64_t>(head);
  if (load<std::uint32_t>(head + 8) != masked_crc32c(std::span(head, 8)))
    return data_loss(at(path_, at_) + "the checksum of its length differs: the file is damaged, " +
                     "or no TFRecord file");
  if (left - kHead < kTail || length > left - kHead - kTail)
    return data_loss(at(path_, at_) + "the file ends inside its " + std::to_string(length) +
                     " bytes");
  if (length > most_)
    return resource_exhausted(at(path_, at_) + "it has " + std::to_string(length) +
                              " bytes, more than " + std::to_string(most_));
  record_.resize(std::size_t(length) + kTail);
  TROUPE_TRY(file_.read_at(at_ + kHead, record_));
  const std::span<const std::byte> bytes(record_.data(), std::size_t(length));
  if (load<std::uint32_t>(record_.data() + length) != masked_crc32c(bytes))
    return data_loss(at(path_, at_) + "the checksum of its " + std::to_string(length) +
                     " bytes differs");
  return ok_status();
} catch (const std::bad_alloc&) {
  return resource_exhausted(at(path_, at_) + "no memory to read it");
}

}  // namespace troupe
