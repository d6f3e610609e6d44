#include "ops/data/records/record_stream.hpp"

#include <algorithm>

#include "ops/data/records/record_frame.hpp"

namespace troupe {

namespace {

// Whether zlib's header could be these two bytes: deflate, a window it knows, and their checksum.
bool begins_zlib(std::uint8_t first, std::uint8_t second) {
  return (first & 15) == 8 && first >> 4 <= 7 && (first * 256 + second) % 31 == 0;
}

// A record of the right length begins as gzip does, so frames come first.
Expected<Wrapping> detect(const DataFile& file) {
  char start[kRecordHead] = {};
  const std::size_t n = std::min<std::uint64_t>(file.size(), sizeof start);
  TROUPE_TRY(file.read_at(0, std::span(start).first(n)));
  if (n == kRecordHead && record_length({start, n})) return Wrapping::none;
  if (n >= 2 && start[0] == '\x1f' && start[1] == '\x8b') return Wrapping::gzip;
  if (n >= 2 && begins_zlib(std::uint8_t(start[0]), std::uint8_t(start[1]))) return Wrapping::zlib;
  return Wrapping::none;
}

Expected<Wrapping> wrapping_of(const DataFile& file, data::Packing packing) {
  switch (packing) {
    case data::Packing::none:
      return Wrapping::none;
    case data::Packing::gzip:
      return Wrapping::gzip;
    case data::Packing::zlib:
      return Wrapping::zlib;
    case data::Packing::detect:
      break;
  }
  return detect(file);
}

}  // namespace

Expected<RecordStream> RecordStream::open(DataFilePtr file, data::Packing packing,
                                          std::uint64_t most) {
  TROUPE_TRY(const Wrapping wrapping, wrapping_of(*file, packing));
  return RecordStream(ByteStream::open_as(std::move(file), wrapping), most);
}

// What the packed content is wrong with, where it shows.
Status RecordStream::broken(const Status& status) const {
  return status.in("at record " + std::to_string(record_) + ", which begins at byte " +
                   std::to_string(offset_) + " when unpacked");
}

Status RecordStream::wrong(const std::string& why) const {
  return data_loss(origin().text() + ": " + why);
}

Expected<std::optional<std::uint64_t>> RecordStream::begin() {
  record_ = next_++;
  offset_ = stream_.offset();
  goes_on_ = false;
  std::string room;
  const auto head = stream_.take(kRecordHead, room);
  if (!head.ok()) return broken(head.status());
  if (head->empty()) return std::optional<std::uint64_t>();
  if (head->size() < kRecordHead) return ends_early();
  const auto length = record_length(*head);
  if (!length) return wrong("its length has another checksum: damaged, or no TFRecord file");
  return length;
}

Expected<bool> RecordStream::next(std::string& record) {
  record.clear();
  TROUPE_TRY(const auto length, begin());
  if (!length) return false;
  if (*length > most_) {
    const auto rest = skip_content(*length);
    if (!rest.ok()) return rest.status();
    goes_on_ = *rest;
    return wrong(std::to_string(*length) + " bytes, and no more than " + std::to_string(most_) +
                 " are allowed");
  }
  RecordChecksum checksum;
  const auto n = stream_.read(
      *length, record, [&](std::string_view part) { checksum.add(part); },
      kRecordTail + kRecordHead);
  if (!n.ok()) return broken(n.status());
  if (*n < *length) return ends_early();
  std::string room;
  const auto tail = stream_.take(kRecordTail, room);
  if (!tail.ok()) return broken(tail.status());
  if (tail->size() < kRecordTail) return ends_early();
  if (ends_record(checksum, *tail)) return true;
  goes_on_ = true;
  return wrong("its content has another checksum");
}

Expected<bool> RecordStream::skip() {
  TROUPE_TRY(const auto length, begin());
  if (!length) return false;
  TROUPE_TRY(const bool whole, skip_content(*length));
  if (!whole) return ends_early();
  return true;
}

Expected<bool> RecordStream::skip_content(std::uint64_t length) {
  const auto passed = stream_.skip(length);
  const auto tail = passed.ok() ? stream_.skip(kRecordTail) : passed;
  if (!tail.ok()) return broken(tail.status());
  return *passed == length && *tail == kRecordTail;
}

}  // namespace troupe
