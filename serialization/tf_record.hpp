// TFRecord: the framing of records in TensorFlow's data files and event files.
//
//   u64  length of the record
//   u32  masked CRC32C of these 8 bytes
//        the record
//   u32  masked CRC32C of the record
//
// Numbers are little-endian. A file is a sequence of frames; an empty file has no records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "serialization/file.hpp"

namespace troupe {

// The CRC32C of bytes that may themselves contain checksums: rotated, and a constant added.
std::uint32_t masked_crc32c(std::span<const std::byte> bytes);

// Appends the frame of one record to `out`.
void append_tf_record(std::vector<std::byte>& out, std::span<const std::byte> record);

// Appends records to a file, each with one append(): if the writer is killed, at most the last
// frame is incomplete. Borrows the file. One thread.
class TfRecordWriter {
 public:
  explicit TfRecordWriter(WritableFile& file) : file_(file) {}
  // The errors of the file, and resource_exhausted if there is no memory for the frame. After an
  // error of the file its last frame may be incomplete, and nothing after it can be read.
  Status write(std::span<const std::byte> record);

 private:
  WritableFile& file_;
  std::vector<std::byte> frame_;
};

// Reads the records of a file in their order. Borrows the file. One thread.
class TfRecordReader {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 31;

  // `path` is the file's name in errors; a record longer than `most` is refused before memory is
  // allocated for it.
  explicit TfRecordReader(ReadableFile& file, std::string path, std::uint64_t most = kMostBytes)
      : file_(file), path_(std::move(path)), most_(most) {}

  // The next record, valid until the next call; nullopt at the end of the file. data_loss, with the
  // file and offset, for a frame that is truncated or has another checksum; resource_exhausted for
  // a record that is too long. All later calls return the same error, since the start of the next
  // frame is unknown.
  Expected<std::optional<std::span<const std::byte>>> next();

  // The offset of the frame that next() reads next, or at which it failed.
  std::uint64_t offset() const { return at_; }

 private:
  Status read();

  ReadableFile& file_;
  std::string path_;
  std::uint64_t most_;
  std::uint64_t at_ = 0;
  std::vector<std::byte> record_;
  Status failed_;
};

}  // namespace troupe
