// Files that datasets are read from: at any place, or from start to end, packed by gzip or not.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/function_ref.hpp"
#include "core/status.hpp"

namespace troupe {

// An open file, of the size that it had then. Immutable: any thread may read it.
class DataFile {
 public:
  virtual ~DataFile() = default;
  virtual const std::string& name() const = 0;
  virtual std::uint64_t size() const = 0;
  // Fills `out` with the bytes from `offset` on; data_loss when the file ends before. Errors name
  // the file.
  virtual Status read_at(std::uint64_t offset, std::span<char> out) const = 0;
};
using DataFilePtr = std::shared_ptr<const DataFile>;

// Opens a file for reading; not_found when there is none.
using OpenDataFile = FunctionRef<Expected<DataFilePtr>(const std::string& path)>;

// A regular file of this machine, links followed. Nothing is read before it is asked for.
// invalid_argument for a directory, a pipe or a device.
Expected<DataFilePtr> open_local_file(const std::string& path);
// Bytes in memory, under a name for errors.
DataFilePtr memory_file(std::string name, std::string content);

// The file at `path`, or the one with ".gz" appended where there is none.
Expected<DataFilePtr> open_plain_or_packed(const std::string& path, OpenDataFile open);

// The error, seen from one level further up: in that file.
Status in_file(const Status& status, const DataFile& file);

// Whether the file begins as gzip content does.
Expected<bool> is_gzip(const DataFile& file);

}  // namespace troupe
