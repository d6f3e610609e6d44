// The bytes of a file from start to end, decompressed if gzipped.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/function_ref.hpp"
#include "ops/data/data_file.hpp"

namespace troupe {

class Inflater;

// How content is compressed: not at all, or with a gzip or a zlib header.
enum class Wrapping { none, gzip, zlib };

// Reads forwards through a buffer of 64 KiB. Where much of a plain file is wanted or skipped, it is
// not read through the buffer, and what follows is read in small parts at first. A copy continues
// independently from the same position; it copies the buffer and, for packed content, its input and
// zlib's state. One user at a time.
class ByteStream {
 public:
  // Detects gzip by the first bytes.
  static Expected<ByteStream> open(DataFilePtr file);
  static ByteStream open_as(DataFilePtr file, Wrapping wrapping);
  ByteStream(const ByteStream& other);
  ByteStream(ByteStream&&) noexcept;
  ByteStream& operator=(ByteStream&&) noexcept;
  ~ByteStream();

  const DataFile& file() const { return *file_; }
  // The next bytes: at least one, none at the end. Valid until the next call of any method.
  // data_loss if packed content is damaged or truncated, or if anything follows it but more gzip.
  Expected<std::string_view> chunk();
  // REQUIRES: at most the size of the last chunk.
  void consume(std::size_t bytes) {
    begin_ += bytes;
    offset_ += bytes;
  }
  // The next `bytes` bytes, or all that are left: where the buffer has them, valid as a chunk is,
  // or else read into `room`, which is empty.
  Expected<std::string_view> take(std::size_t bytes, std::string& room) {
    if (end_ - begin_ < bytes) {
      TROUPE_TRY(read(bytes, room));
      return std::string_view(room);
    }
    const std::string_view found(buffer_.data() + begin_, bytes);
    consume(bytes);
    return found;
  }
  // Appends the next `bytes` bytes to `out`, or all that are left; returns how many. Allocates only
  // for bytes that exist.
  Expected<std::uint64_t> read(std::uint64_t bytes, std::string& out) {
    return read(bytes, out, [](std::string_view) {});
  }
  // Also tells each part while the processor has it near. The next read will be of `ahead` bytes:
  // it finds them, where one call of the kernel can read both.
  using Part = FunctionRef<void(std::string_view)>;
  Expected<std::uint64_t> read(std::uint64_t bytes, std::string& out, Part each,
                               std::size_t ahead = 0);
  // Skips bytes, in a plain file without reading.
  Expected<std::uint64_t> skip(std::uint64_t bytes);
  std::uint64_t offset() const { return offset_; }  // of the next byte, in the content
  std::uint64_t bytes_held() const;

 private:
  explicit ByteStream(DataFilePtr file);
  Status refill();
  Expected<std::uint64_t> read_directly(std::uint64_t bytes, std::string& out, std::size_t ahead);

  DataFilePtr file_;
  std::unique_ptr<Inflater> inflater_;  // of packed content
  std::string buffer_;
  std::size_t begin_ = 0, end_ = 0;  // of the valid part of the buffer
  std::uint64_t offset_ = 0;         // of begin_, in the content
  std::uint64_t read_ = 0;           // bytes of a plain file read so far
  std::size_t part_;                 // of a plain file to read next
};

// Of a file that is read whole.
inline constexpr std::uint64_t kMostInFile = std::uint64_t{1} << 30;

// A file's whole content, unpacked; resource_exhausted if it is longer than `most` bytes.
Expected<std::string> read_content(DataFilePtr file, std::uint64_t most);

// A file for random access: the file itself, or the content of a gzipped file, in memory.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{4} << 30;
Expected<DataFilePtr> unpacked(DataFilePtr file, std::uint64_t most = kMostUnpacked);

}  // namespace troupe
