#include "ops/data/arrays/zip_archive.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

namespace troupe {

namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50,
                        kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr std::size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kEnd64Size = 56,
                      kLocatorSize = 20;
constexpr std::uint64_t kMostDirectory = std::uint64_t{64} << 20;
constexpr std::size_t kPart = std::size_t{64} << 10;

template <class T>
T number_at(std::string_view bytes, std::size_t offset) {
  T value;  // little-endian, as this machine
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

// A stretch of a file.
class FilePart final : public DataFile {
 public:
  FilePart(std::string name, DataFilePtr whole, std::uint64_t begin, std::uint64_t size)
      : name_(std::move(name)), whole_(std::move(whole)), begin_(begin), size_(size) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    if (offset > size_ || out.size() > size_ - offset)
      return data_loss("file '" + name_ + "' ends before byte " +
                       std::to_string(offset + out.size()));
    return whole_->read_at(begin_ + offset, out);
  }
  void rest() const override { whole_->rest(); }

 private:
  std::string name_;
  DataFilePtr whole_;
  std::uint64_t begin_, size_;
};

class RawInflater {
 public:
  RawInflater() { usable_ = inflateInit2(&stream_, -15) == Z_OK; }
  RawInflater(const RawInflater&) = delete;
  RawInflater& operator=(const RawInflater&) = delete;
  ~RawInflater() {
    if (usable_) inflateEnd(&stream_);
  }

  // All of the packed bytes, which are to become `size`: no more memory is taken than they need.
  Expected<std::string> inflate_all(const DataFile& packed, std::uint64_t size) {
    if (!usable_) return resource_exhausted("zlib has no memory");
    std::string out, in(kPart, '\0'), part(kPart, '\0');
    std::uint64_t at = 0;
    for (int result = Z_OK; result != Z_STREAM_END;) {
      if (stream_.avail_in == 0) {
        const std::size_t n = std::min<std::uint64_t>(in.size(), packed.size() - at);
        TROUPE_TRY(packed.read_at(at, std::span(in).first(n)));
        at += n;
        stream_.next_in = reinterpret_cast<Bytef*>(in.data());
        stream_.avail_in = uInt(n);
      }
      stream_.next_out = reinterpret_cast<Bytef*>(part.data());
      stream_.avail_out = uInt(part.size());
      result = inflate(&stream_, Z_NO_FLUSH);
      const std::size_t made = part.size() - stream_.avail_out;
      const bool stuck = made == 0 && stream_.avail_in == 0 && at == packed.size();
      if (result != Z_STREAM_END && (result != Z_OK || stuck))
        return data_loss("damaged or truncated deflated content");
      if (made > size - out.size())
        return data_loss("more than the " + std::to_string(size) + " bytes that the archive says");
      out.append(part, 0, made);
    }
    if (stream_.avail_in != 0 || at != packed.size() || out.size() != size)
      return data_loss("another number of bytes than the archive says");
    return out;
  }

 private:
  z_stream stream_{};
  bool usable_ = false;
};

Expected<std::uint32_t> checksum_of(const DataFile& file) {
  std::string part;
  uLong crc = crc32(0, nullptr, 0);
  for (std::uint64_t at = 0; at < file.size(); at += part.size()) {
    part.resize(std::min<std::uint64_t>(kPart, file.size() - at));
    TROUPE_TRY(file.read_at(at, part));
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), uInt(part.size()));
  }
  return std::uint32_t(crc);
}

struct Directory {
  std::uint64_t entries = 0, size = 0, begin = 0;
};

// From the record at the end of the file, behind which there is a comment at most.
Expected<Directory> find_directory(const DataFile& file) {
  const std::size_t n = std::min<std::uint64_t>(file.size(), kEndSize + 0xffff);
  const std::uint64_t begin = file.size() - n;
  std::string end(n, '\0');
  TROUPE_TRY(file.read_at(begin, end));
  for (std::size_t i = n < kEndSize ? 0 : n - kEndSize + 1; i-- > 0;) {
    if (number_at<std::uint32_t>(end, i) != kEnd ||
        number_at<std::uint16_t>(end, i + 20) != n - i - kEndSize)
      continue;
    Directory out{number_at<std::uint16_t>(end, i + 10), number_at<std::uint32_t>(end, i + 12),
                  number_at<std::uint32_t>(end, i + 16)};
    if (out.entries != 0xffff && out.size != 0xffffffff && out.begin != 0xffffffff) return out;
    if (begin + i < kLocatorSize) return data_loss("an archive without its directory");
    std::string locator(kLocatorSize, '\0'), end64(kEnd64Size, '\0');
    TROUPE_TRY(file.read_at(begin + i - kLocatorSize, locator));
    const auto at = number_at<std::uint64_t>(locator, 8);
    if (number_at<std::uint32_t>(locator, 0) != kLocator64 || file.size() < kEnd64Size ||
        at > file.size() - kEnd64Size)
      return data_loss("an archive without its directory");
    TROUPE_TRY(file.read_at(at, end64));
    if (number_at<std::uint32_t>(end64, 0) != kEnd64)
      return data_loss("an archive without its directory");
    return Directory{number_at<std::uint64_t>(end64, 32), number_at<std::uint64_t>(end64, 40),
                     number_at<std::uint64_t>(end64, 48)};
  }
  return data_loss("no ZIP archive: it has no directory at its end");
}

Status wrong_entry() { return data_loss("an archive with a damaged directory"); }

// The numbers that did not fit 32 bits stand in an extra field, in that order.
Status read_wide_numbers(std::string_view extra, std::initializer_list<std::uint64_t*> numbers) {
  while (extra.size() >= 4) {
    const auto id = number_at<std::uint16_t>(extra, 0), size = number_at<std::uint16_t>(extra, 2);
    if (size > extra.size() - 4) return wrong_entry();
    std::string_view field = extra.substr(4, size);
    extra.remove_prefix(4 + std::size_t(size));
    if (id != 1) continue;
    for (std::uint64_t* number : numbers) {
      if (*number != 0xffffffff) continue;
      if (field.size() < 8) return wrong_entry();
      *number = number_at<std::uint64_t>(field, 0);
      field.remove_prefix(8);
    }
  }
  return ok_status();
}

}  // namespace

Expected<ZipArchive> ZipArchive::open(DataFilePtr file) {
  ZipArchive archive(std::move(file));
  if (Status s = archive.read_directory(); !s.ok()) return in_file(s, *archive.file_);
  return archive;
}

Expected<ZipArchive::Entry> ZipArchive::parse_entry(std::string_view bytes, std::size_t name,
                                                    std::size_t extra) const {
  Entry entry{number_at<std::uint16_t>(bytes, 8),  number_at<std::uint16_t>(bytes, 10),
              number_at<std::uint32_t>(bytes, 16), number_at<std::uint32_t>(bytes, 20),
              number_at<std::uint32_t>(bytes, 24), number_at<std::uint32_t>(bytes, 42)};
  TROUPE_TRY(read_wide_numbers(bytes.substr(kCentralSize + name, extra),
                               {&entry.size, &entry.packed, &entry.header}));
  return entry;
}

Status ZipArchive::read_directory() {
  TROUPE_TRY(const Directory directory, find_directory(*file_));
  if (directory.size > kMostDirectory || directory.begin > file_->size() ||
      directory.size > file_->size() - directory.begin)
    return wrong_entry();
  std::string bytes(directory.size, '\0');
  TROUPE_TRY(file_->read_at(directory.begin, bytes));
  std::string_view left = bytes;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    if (left.size() < kCentralSize || number_at<std::uint32_t>(left, 0) != kCentral)
      return wrong_entry();
    const std::size_t name = number_at<std::uint16_t>(left, 28),
                      extra = number_at<std::uint16_t>(left, 30),
                      comment = number_at<std::uint16_t>(left, 32);
    if (left.size() - kCentralSize < name + extra + comment) return wrong_entry();
    TROUPE_TRY(Entry entry, parse_entry(left, name, extra));
    entries_.insert_or_assign(std::string(left.substr(kCentralSize, name)), entry);
    left.remove_prefix(kCentralSize + name + extra + comment);
  }
  return left.empty() ? ok_status() : wrong_entry();
}

// Where the content of a member begins.
Expected<std::uint64_t> ZipArchive::data_of(const std::string& name, const Entry& entry) const {
  std::string local(kLocalSize + name.size(), '\0');
  if (entry.header > file_->size() || local.size() > file_->size() - entry.header)
    return wrong_entry();
  TROUPE_TRY(file_->read_at(entry.header, local));
  if (number_at<std::uint32_t>(local, 0) != kLocal ||
      number_at<std::uint16_t>(local, 26) != name.size() ||
      std::string_view(local).substr(kLocalSize) != name)
    return data_loss("member '" + name + "' is not where the directory of the archive says");
  const std::uint64_t begin = entry.header + local.size() + number_at<std::uint16_t>(local, 28);
  if (begin > file_->size() || entry.packed > file_->size() - begin)
    return data_loss("member '" + name + "' ends behind the archive");
  return begin;
}

Expected<DataFilePtr> ZipArchive::member(const std::string& name, std::uint64_t most) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    return in_file(not_found("there is no member '" + name + "'"), *file_);
  const Entry& entry = found->second;
  const auto wrong = [&](const Status& status) {
    return in_file(status.in("in member '" + name + "'"), *file_);
  };
  if ((entry.flags & 1) != 0) return wrong(unimplemented("an encrypted member"));
  if (entry.method != 0 && entry.method != 8)
    return wrong(unimplemented("compression by method " + std::to_string(entry.method)));
  if (entry.method == 0 && entry.packed != entry.size) return wrong(wrong_entry());
  const auto begin = data_of(name, entry);
  if (!begin.ok()) return wrong(begin.status());
  const std::string path = file_->name() + "/" + name;
  DataFilePtr content = std::make_shared<FilePart>(path, file_, *begin, entry.packed);
  if (entry.method == 8) {
    if (entry.size > most)
      return wrong(resource_exhausted(std::to_string(entry.size) +
                                      " bytes when unpacked; at most " + std::to_string(most) +
                                      " are possible"));
    auto unpacked = RawInflater().inflate_all(*content, entry.size);
    if (!unpacked.ok()) return wrong(unpacked.status());
    content = memory_file(path, std::move(*unpacked));
  }
  TROUPE_TRY(const std::uint32_t crc, checksum_of(*content));
  if (crc != entry.crc) return wrong(data_loss("its content has another checksum"));
  return content;
}

}  // namespace troupe
