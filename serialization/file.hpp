// The file system as durable files need it, an interface so that tests can crash it at every step.
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

// A new file, open for appending. Closed by its destructor; only synced content is certain to
// survive a crash. One owner, one thread.
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
  // Fills `out`; data_loss if the file ends earlier.
  virtual Status read_at(std::uint64_t offset, std::span<std::byte> out) = 0;
};

// Errors: not_found, already_exists, resource_exhausted (the disk or a quota is full),
// invalid_argument (a path with a NUL), failed_precondition (no permission, read-only, not empty, a
// link instead of a file), else internal; they name the path. Calls may come from any thread.
class FileSystem {
 public:
  virtual ~FileSystem() = default;
  // An existing file is already_exists.
  virtual Expected<std::unique_ptr<WritableFile>> create(const std::string& path) = 0;
  // Regular files only; links are not followed.
  virtual Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) = 0;
  // Also creates missing parents, and is durable; an existing directory is fine.
  virtual Status make_dirs(const std::string& path) = 0;
  virtual Status make_dir(const std::string& path) = 0;  // an existing one is already_exists
  // Replaces an existing file, or an empty directory by a directory.
  virtual Status rename(const std::string& from, const std::string& to) = 0;
  // Swaps two names in one step. unimplemented where the file system cannot, as NFS and CIFS.
  virtual Status exchange(const std::string& a, const std::string& b) = 0;
  // Makes creations, renames and removals in this directory durable.
  virtual Status sync_dir(const std::string& path) = 0;
  // Names in the directory, sorted, without "." and "..".
  virtual Expected<std::vector<std::string>> list(const std::string& path) = 0;
  virtual Status remove(const std::string& path) = 0;
  // Also removes its files; it must have no subdirectories. Of a link, removes only the link.
  virtual Status remove_dir(const std::string& path) = 0;
  // The path to which a new file for `path` has to be renamed: `path`, or the target of symbolic
  // links there. failed_precondition if that is not a regular file, which the rename would replace:
  // a device, a pipe, a socket or a directory.
  virtual Expected<std::string> place_of(const std::string& path) { return path; }
};

// The file system of this machine. Has no state.
FileSystem& disk();

// Writes a file atomically, also with respect to crashes: under a temporary name in the same
// directory (of FileSystem::place_of), synced, then renamed. An error leaves nothing behind and an
// older file unchanged.
Status write_file(FileSystem& files, const std::string& path,
                  FunctionRef<Status(WritableFile&)> write);

// The two halves of write_file(). The first writes and syncs a new file, replaces one that a crash
// left behind, and removes its own after an error; the second renames it in the same directory.
Status write_synced(FileSystem& files, const std::string& path,
                    FunctionRef<Status(WritableFile&)> write);
Status put_in_place(FileSystem& files, const std::string& written, const std::string& path);

// A temporary name for a file that becomes `path`, in the same directory: ".FILE.SUFFIX".
std::string name_beside(const std::string& path, const std::string& suffix);

// A random number of 64 bits, as text, for names that are unique on all machines.
std::string random_text();

// The path to read for `path`, whose links are followed as write_file() follows them. Where they
// lead nowhere it is `path` itself: opening that says why.
std::string place_to_read(FileSystem& files, const std::string& path);

// The whole file; resource_exhausted if it is longer than `most`.
Expected<std::vector<std::byte>> read_file(FileSystem& files, const std::string& path,
                                           std::uint64_t most);

}  // namespace troupe
