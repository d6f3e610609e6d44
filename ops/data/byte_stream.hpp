// The bytes of a file from start to end, unpacked where gzip has packed them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ops/data/data_file.hpp"

namespace troupe {

class Inflater;

// How content is packed: by gzip with a header of gzip's or of zlib's, or not at all.
enum class Wrapping { none, gzip, zlib };

// Reads forwards through a buffer of 64 KiB. A copy goes on by itself from the same place: what it
// costs is the buffer, and of packed content 40 KiB of zlib's state. One user at a time.
class ByteStream {
 public:
  // Content is recognised as gzip's by its first bytes.
  static Expected<ByteStream> open(DataFilePtr file);
  static ByteStream open_as(DataFilePtr file, Wrapping wrapping);
  ByteStream(const ByteStream& other);
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  const DataFile& file() const { return *file_; }
  // What comes next: at least one byte, none at the end. Good until the next call of any method.
  // data_loss when packed content is damaged, ends early, or something follows it.
  Expected<std::string_view> chunk();
  // REQUIRES: no more than the last chunk has.
  void consume(std::size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }
  // Appends the next `bytes` bytes to `out`, or all that are left: memory is taken for what is
  // there, not for what is asked for. Returns how many.
  Expected<std::uint64_t> read(std::uint64_t bytes, std::string& out);
  // Passes over them, in a plain file without reading.
  Expected<std::uint64_t> skip(std::uint64_t bytes);
  std::uint64_t offset() const { return offset_; }  // of what comes next, in the content
  std::uint64_t bytes_held() const;

 private:
  explicit ByteStream(DataFilePtr file);
  Status refill();

  DataFilePtr file_;
  std::unique_ptr<Inflater> inflater_;  // of packed content
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of what is in the buffer
  std::uint64_t offset_ = 0;         // of what is at begin_, in the content
  std::uint64_t read_ = 0;           // of a plain file so far
};

// All of a file's content, unpacked; resource_exhausted when it is more than `most` bytes.
Expected<std::string> read_content(DataFilePtr file, std::uint64_t most);

// The file, or where gzip has packed it what is in it, in memory, for who reads at any place.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;
Expected<DataFilePtr> unpacked(DataFilePtr file, std::uint64_t most = kMostUnpacked);

}  // namespace troupe
