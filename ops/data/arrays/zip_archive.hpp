// ZIP archives, as written by NumPy: stored or deflated members, also with 64-bit sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "ops/data/data_file.hpp"

namespace troupe {

// The directory of an archive. Immutable.
class ZipArchive {
 public:
  // data_loss if the file is not an archive or its directory is damaged. Errors name the file.
  static Expected<ZipArchive> open(DataFilePtr file);

  // A member as a file: a part of the archive if it is stored, or in memory if it is deflated, then
  // at most `most` bytes. Verifies its checksum, so a stored member is read once. not_found for an
  // unknown name, unimplemented for other methods and for encryption.
  Expected<DataFilePtr> member(const std::string& name, std::uint64_t most) const;

 private:
  struct Entry {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t crc = 0;
    std::uint64_t packed = 0, size = 0, header = 0;  // bytes; where its local header begins
  };
  explicit ZipArchive(DataFilePtr file) : file_(std::move(file)) {}
  Status read_directory();
  Expected<Entry> parse_entry(std::string_view bytes, std::size_t name, std::size_t extra) const;
  Expected<std::uint64_t> data_of(const std::string& name, const Entry& entry) const;

  DataFilePtr file_;
  std::map<std::string, Entry> entries_;
};

}  // namespace troupe
