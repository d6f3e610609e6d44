// The records of one TFRecord file, in order.
#pragma once

#include <cstdint>
#include <string>

#include "ops/data/byte_stream.hpp"
#include "ops/data/files.hpp"
#include "ops/data/source.hpp"

namespace troupe {

// Reads forwards; a copy continues independently. One user at a time.
class RecordStream {
 public:
  // A record longer than `most` bytes is an error. Packing::detect: the file is plain if it begins
  // with a frame; otherwise its first bytes decide.
  static Expected<RecordStream> open(DataFilePtr file, data::Packing packing, std::uint64_t most);

  // The next record; false at the end. data_loss names the record, its byte and the file. After an
  // error, reading can continue after the record if goes_on(); otherwise it cannot.
  Expected<bool> next(std::string& record);
  // Skips a record without checking its content; false at the end.
  Expected<bool> skip();

  bool goes_on() const { return goes_on_; }
  Origin origin() const { return {&stream_.file(), record_, offset_}; }  // of the last record
  std::size_t bytes_held() const { return sizeof *this + stream_.bytes_held(); }

 private:
  RecordStream(ByteStream stream, std::uint64_t most) : stream_(std::move(stream)), most_(most) {}
  // The length of the next record; nullopt at the end.
  Expected<std::optional<std::uint64_t>> begin();
  // Skips the rest of a frame; returns whether it was complete.
  Expected<bool> skip_content(std::uint64_t length);
  Status wrong(const std::string& why) const;
  Status broken(const Status& status) const;
  Status ends_early() const { return wrong("the file ends inside of it"); }

  ByteStream stream_;
  std::uint64_t most_;
  std::uint64_t next_ = 0;                 // record
  std::uint64_t record_ = 0, offset_ = 0;  // of the last one
  bool goes_on_ = false;
};

}  // namespace troupe
