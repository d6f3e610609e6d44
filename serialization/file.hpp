// What durable files need of a file system, so that tests can crash it at every step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/function_ref.hpp"
#include "core/status.hpp"

namespace troupe {

// A new file, open for writing at its end. Closed by its destructor; only what was synced is sure
// to be there after a crash. One owner, one thread.
class WritableFile {
 public:
  virtual ~WritableFile() = default;
  virtual Status append(std::span<const std::byte> bytes) = 0;
  virtual Status sync() = 0;
};

// A file open for reading. One owner, one thread.
class ReadableFile {
 public:
  virtual ~ReadableFile() = default;
  virtual std::uint64_t size() const = 0;
  // Fills `out`; data_loss when the file ends before.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
};

// Errors: not_found, already_exists, resource_exhausted (the disk or a quota is full),
// failed_precondition (no permission, read-only, not empty, a link where a file is wanted), else
// internal; they name the path. Calls may come from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // An existing file is already_exists.
  virtual Expected<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  // Regular files only; links are not followed.
  virtual Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) = 0;
  // With missing parents, durable; an existing directory is fine.
  virtual Status make_dirs(const std::string& path) = 0;
  virtual Status make_dir(const std::string& path) = 0;  // an existing one is already_exists
  // Replaces an existing file, or an empty directory by a directory.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Swaps two names in one step.
  virtual Status exchange(const std::string& a, const std::string& b) = 0;
  // Makes creations, renames and removals in this directory durable.
  virtual Status sync_dir(const std::string& path) = 0;
  // Names in the directory, sorted, without "." and "..".
  virtual Expected<std::vector<std::string>> list(const std::string& path) = 0;
  virtual Status remove(const std::string& path) = 0;
  // With its files; it holds no directories. Of a link to a directory, the link alone.
  virtual Status remove_dir(const std::string& path) = 0;
  // Where a file named `path` is to be put by renaming: there, or where the links of that name
  // lead. failed_precondition for what is no file, and would be replaced by one: a device, a pipe,
  // a socket, a directory.
  virtual Expected<std::string> place_of(const std::string& path) { return path; }
};

// The file system of this machine. Has no state.
FileSystem& disk();

// A file that is there as a whole or not at all, also after a crash: written beside its place
// (FileSystem::place_of), synced, renamed. After an error nothing is left behind and an older file
// is as it was.
Status write_file(FileSystem& files, const std::string& path,
                  FunctionRef<Status(WritableFile&)> write);

// Its two halves: a new file, synced, instead of one that a crash left behind, and nothing after an
// error; then, in the same directory, into its place.
Status write_synced(FileSystem& files, const std::string& path,
                    FunctionRef<Status(WritableFile&)> write);
Status put_in_place(FileSystem& files, const std::string& written, const std::string& path);

// A name for a file on its way to `path`, in the same directory: ".FILE.SUFFIX".
std::string name_beside(const std::string& path, const std::string& suffix);

// The whole file; resource_exhausted when it is longer than `most`.
Expected<std::vector<std::byte>> read_file(FileSystem& files, const std::string& path,
                                           std::uint64_t most);

}  // namespace troupe
