// A folder of files in the memory of this machine.
#pragma once

#include <memory>
#include <string>

#include "core/descriptor.hpp"
#include "core/status.hpp"

namespace troupe {

// A folder that only this user may enter. Its files are in memory that belongs to no process: they
// outlive the processes that write them. The destructor removes it; the folder of a killed owner is
// removed when the next one is made.
class MemoryFolder {
 public:
  static constexpr const char* kWhere = "/dev/shm";
  // failed_precondition if files of the folder `in` are not in memory, or none can be made there.
  static Expected<std::unique_ptr<MemoryFolder>> make(const std::string& in = kWhere);
  ~MemoryFolder();
  MemoryFolder(const MemoryFolder&) = delete;
  MemoryFolder& operator=(const MemoryFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  MemoryFolder(std::string path, Descriptor owner)
      : path_(std::move(path)), owner_(std::move(owner)) {}

  const std::string path_;
  const Descriptor owner_;  // locked as long as the folder is in use
};

}  // namespace troupe
