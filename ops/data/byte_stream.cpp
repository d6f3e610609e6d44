#include "ops/data/byte_stream.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>

#include "ops/data/append_bytes.hpp"

namespace troupe {

constexpr std::size_t kBuffer = std::size_t{64} << 10, kFirstPart = std::size_t{1} << 10;
// Calls of the kernel take time, and what is read should still be near when it is checked.
constexpr std::size_t kDirectPart = std::size_t{256} << 10;

// Decompresses a file's content with zlib.
class Inflater {
 public:
  explicit Inflater(Wrapping wrapping) : gzip_(wrapping == Wrapping::gzip) {
    usable_ = inflateInit2(&stream_, gzip_ ? 15 + 16 : 15) == Z_OK;
  }
  Inflater(const Inflater& other)
      : gzip_(other.gzip_), input_(other.input_), offset_(other.offset_), ended_(other.ended_) {
    // zlib copies only its own state; unread input is in our buffer.
    usable_ = other.usable_ && inflateCopy(&stream_, const_cast<z_stream*>(&other.stream_)) == Z_OK;
    const std::size_t left = other.stream_.avail_in;
    stream_.avail_in = uInt(left);
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data() + (input_.size() - left));
  }
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() {
    if (usable_) inflateEnd(&stream_);
  }

  // Returns the number of bytes written to `out`; 0: the end.
  Expected<std::size_t> read(const DataFile& file, std::span<char> out) {
    if (!usable_) return resource_exhausted("zlib has no memory");
    if (ended_) return std::size_t{0};
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = uInt(out.size());
    while (stream_.avail_out == out.size() && !ended_) {
      if (stream_.avail_in == 0) TROUPE_TRY(refill(file));
      const int result = inflate(&stream_, Z_NO_FLUSH);
      if (result == Z_STREAM_END) {
        TROUPE_TRY(end_part(file));
        continue;
      }
      // Z_BUF_ERROR with input left, or at the end of the file, means truncated content.
      if (result != Z_OK ||
          (stream_.avail_in == 0 && offset_ == file.size() && stream_.avail_out == out.size()))
        return data_loss("damaged or truncated " + std::string(name()) + " content");
    }
    return out.size() - stream_.avail_out;
  }

 private:
  Status refill(const DataFile& file) {
    const std::size_t part = std::min<std::uint64_t>(kBuffer, file.size() - offset_);
    input_.resize(part);
    TROUPE_TRY(file.read_at(offset_, input_));
    offset_ += part;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = uInt(part);
    return ok_status();
  }
  // At the end of what a header began. gzip's files may stand one behind another.
  Status end_part(const DataFile& file) {
    const std::uint64_t left = stream_.avail_in + (file.size() - offset_);
    if (gzip_) {
      TROUPE_TRY(const bool another, is_gzip(file, file.size() - left));
      if (another && inflateReset(&stream_) == Z_OK) return ok_status();
    }
    ended_ = true;
    if (left == 0) return ok_status();
    return data_loss(std::to_string(left) + " bytes stand after the end of the " + name() +
                     " content");
  }
  const char* name() const { return gzip_ ? "gzip" : "zlib"; }

  const bool gzip_;
  z_stream stream_{};
  std::string input_;
  std::uint64_t offset_ = 0;  // of the file
  bool usable_ = false, ended_ = false;
};

ByteStream::ByteStream(DataFilePtr file)
    : file_(std::move(file)), buffer_(kBuffer, '\0'), part_(kBuffer) {}
ByteStream::ByteStream(const ByteStream& other)
    : file_(other.file_),
      inflater_(other.inflater_ ? std::make_unique<Inflater>(*other.inflater_) : nullptr),
      buffer_(other.buffer_),
      begin_(other.begin_),
      end_(other.end_),
      offset_(other.offset_),
      read_(other.read_),
      part_(other.part_) {}
ByteStream::ByteStream(ByteStream&&) noexcept = default;
ByteStream& ByteStream::operator=(ByteStream&&) noexcept = default;
ByteStream::~ByteStream() = default;

Expected<ByteStream> ByteStream::open(DataFilePtr file) {
  TROUPE_TRY(const bool packed, is_gzip(*file));
  return open_as(std::move(file), packed ? Wrapping::gzip : Wrapping::none);
}

ByteStream ByteStream::open_as(DataFilePtr file, Wrapping wrapping) {
  ByteStream stream(std::move(file));
  if (wrapping != Wrapping::none) stream.inflater_ = std::make_unique<Inflater>(wrapping);
  return stream;
}

Expected<std::string_view> ByteStream::chunk() {
  if (begin_ == end_) TROUPE_TRY(refill());
  return std::string_view(buffer_).substr(begin_, end_ - begin_);
}

Status ByteStream::refill() {
  begin_ = end_ = 0;
  if (inflater_) {
    auto read = inflater_->read(*file_, buffer_);
    if (!read.ok()) return in_file(read.status(), *file_);
    end_ = *read;
    return ok_status();
  }
  const std::size_t part = std::min<std::uint64_t>(part_, file_->size() - read_);
  TROUPE_TRY(file_->read_at(read_, std::span(buffer_).first(part)));
  read_ += part;
  end_ = part;
  part_ = std::min(2 * part_, kBuffer);
  return ok_status();
}

// A part of the next bytes of a plain file, when the buffer is empty. What is wanted behind the
// last part comes with it, and goes into the buffer.
Expected<std::uint64_t> ByteStream::read_directly(std::uint64_t bytes, std::string& out,
                                                  std::size_t ahead) {
  const std::uint64_t left = file_->size() - read_;
  const auto part = std::size_t(std::min({bytes, std::uint64_t{kDirectPart}, left}));
  const auto more = part < bytes ? 0 : std::size_t(std::min<std::uint64_t>(ahead, left - part));
  TROUPE_TRY(append_bytes(out, part, more, [&](std::span<char> to) {
    TROUPE_TRY(file_->read_at(read_, to));
    std::memcpy(buffer_.data(), to.data() + part, more);
    return ok_status();
  }));
  read_ += part + more;
  offset_ += part;
  begin_ = 0;
  end_ = more;
  part_ = kFirstPart;
  return part;
}

Expected<std::uint64_t> ByteStream::read(std::uint64_t bytes, std::string& out, Part each,
                                         std::size_t ahead) {
  ahead = bytes < kFirstPart ? 0 : std::min(ahead, kFirstPart);
  // Of packed content nobody knows how much there is.
  const std::uint64_t known = (end_ - begin_) + (inflater_ ? 0 : file_->size() - read_);
  out.reserve(out.size() + std::size_t(std::min(bytes, known)) + ahead);
  for (std::uint64_t left = bytes; left > 0;) {
    if (begin_ == end_ && !inflater_ && left >= kFirstPart) {
      TROUPE_TRY(const std::uint64_t part, read_directly(left, out, ahead));
      if (part == 0) return bytes - left;
      each(std::string_view(out).substr(out.size() - std::size_t(part)));
      left -= part;
      continue;
    }
    TROUPE_TRY(const std::string_view all, chunk());
    if (all.empty()) return bytes - left;
    const std::size_t part = std::min<std::uint64_t>(all.size(), left);
    out.append(all.substr(0, part));
    each(all.substr(0, part));
    consume(part);
    left -= part;
  }
  return bytes;
}

Expected<std::uint64_t> ByteStream::skip(std::uint64_t bytes) {
  std::uint64_t left = bytes;
  while (left > 0) {
    if (begin_ == end_ && !inflater_) {
      const std::uint64_t part = std::min(left, file_->size() - read_);
      read_ += part;
      offset_ += part;
      if (part >= kFirstPart) part_ = kFirstPart;
      return bytes - (left - part);
    }
    TROUPE_TRY(const std::string_view all, chunk());
    if (all.empty()) break;
    const std::size_t part = std::min<std::uint64_t>(all.size(), left);
    consume(part);
    left -= part;
  }
  return bytes - left;
}

std::uint64_t ByteStream::bytes_held() const {
  return buffer_.size() + (inflater_ ? 2 * kBuffer : 0);
}

Expected<std::string> read_content(DataFilePtr file, std::uint64_t most) {
  TROUPE_TRY(ByteStream stream, ByteStream::open(file));
  std::string content;
  for (;;) {
    TROUPE_TRY(const std::string_view chunk, stream.chunk());
    if (chunk.empty()) return content;
    if (chunk.size() > most - content.size())
      return in_file(
          resource_exhausted("more than " + std::to_string(most) + " bytes when unpacked"), *file);
    content.append(chunk);
    stream.consume(chunk.size());
  }
}

Expected<DataFilePtr> unpacked(DataFilePtr file, std::uint64_t most) {
  TROUPE_TRY(const bool packed, is_gzip(*file));
  if (!packed) return file;
  TROUPE_TRY(std::string content, read_content(file, most));
  return memory_file(file->name(), std::move(content));
}

}  // namespace troupe
