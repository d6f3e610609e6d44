#include "actors/job/memory_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOwner = "/.owner";

Status no_folder(const std::string& in, const std::string& why) {
  return failed_precondition(fmt::format("no folder for files in memory in '{}': {}", in, why));
}

std::string prefix() { return fmt::format("troupe-{}-", getuid()); }

// The lock of its owner; empty: somebody has it, or there is none.
Descriptor owned(const std::string& path, int flags) {
  Descriptor owner(open((path + kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600));
  if (owner && flock(owner.get(), LOCK_EX | LOCK_NB) != 0) return {};
  return owner;
}

// Those whose owner is gone. Others of the same user may do so at once.
void sweep(const std::string& in) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(in, none)) {
    if (!entry.path().filename().string().starts_with(prefix())) continue;
    struct stat info {};
    if (lstat(entry.path().c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
        info.st_uid != getuid())
      continue;
    const Descriptor left = owned(entry.path(), 0);
    if (left || errno == ENOENT) fs::remove_all(entry.path(), none);
  }
}

}  // namespace

Expected<std::unique_ptr<MemoryFolder>> MemoryFolder::make(const std::string& in) {
  struct statfs info {};
  if (statfs(in.c_str(), &info) != 0) return no_folder(in, std::strerror(errno));
  if (info.f_type != TMPFS_MAGIC && info.f_type != RAMFS_MAGIC)
    return no_folder(in, "its files are on a disk");
  sweep(in);
  // Named when it is locked: until then others would take it for one that is left behind.
  std::string made = in + "/.new-" + prefix() + "XXXXXX";
  if (mkdtemp(made.data()) == nullptr) return no_folder(in, std::strerror(errno));
  Descriptor owner = owned(made, O_CREAT | O_EXCL);
  std::string path = in + "/" + made.substr(in.size() + std::strlen("/.new-"));
  if (!owner || rename(made.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    std::error_code none;
    fs::remove_all(made, none);
    return no_folder(in, why);
  }
  return std::unique_ptr<MemoryFolder>(new MemoryFolder(std::move(path), std::move(owner)));
}

MemoryFolder::~MemoryFolder() {
  std::error_code none;
  fs::remove_all(path_, none);
}

}  // namespace troupe
