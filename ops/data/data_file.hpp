// Files of datasets, plain or gzipped.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/function_ref.hpp"
#include "core/status.hpp"

namespace troupe {

// An open file with the size that it had when it was opened. Thread-safe.
class DataFile {
 public:
  virtual ~DataFile() = default;
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  // Fills `out` with the bytes at `offset`. An error if the file ends earlier, which names the
  // file; failed_precondition if it has become shorter.
  virtual Status read_at(std::uint64_t offset, std::span<char> out) const = 0;
  // Closes the file until the next read, which fails with failed_precondition if the file has been
  // replaced or changed in between.
  virtual void rest() const {}
};
using DataFilePtr = std::shared_ptr<const DataFile>;

// Opens a file for reading; not_found if it does not exist.
using OpenDataFile = FunctionRef<Expected<DataFilePtr>(const std::string& path)>;

// Opens a regular file of this machine; symbolic links are followed. invalid_argument for a
// directory, a pipe or a device.
Expected<DataFilePtr> open_local_file(const std::string& path);
// Bytes in memory, with a name for errors.
DataFilePtr memory_file(std::string name, std::string content);

// The entries of a folder of this machine, in ascending order of the bytes of their names.
struct FolderEntry {
  std::string name;
  bool folder = false;  // symbolic links are followed
};
Expected<std::vector<FolderEntry>> list_local_folder(const std::string& path);

// Opens the file at `path`, or at `path` + ".gz" if there is none.
Expected<DataFilePtr> open_plain_or_packed(const std::string& path, OpenDataFile open);

// Adds the file's name to an error.
Status in_file(const Status& status, const DataFile& file);

// Whether gzip's magic bytes stand at `offset` of the file.
Expected<bool> is_gzip(const DataFile& file, std::uint64_t offset = 0);

}  // namespace troupe
