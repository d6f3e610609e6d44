#include "ops/data/data_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "core/descriptor.hpp"
#include "core/name.hpp"

namespace troupe {

namespace {

Status file_error(const std::string& name, const char* what, int error) {
  const std::string text = std::string("cannot ") + what + " '" + name + "': " + strerror(error);
  // Not data_loss: a retry may succeed, so the file must not count as damaged.
  return error == ENOENT || error == ENOTDIR ? not_found(text) : failed_precondition(text);
}

std::string shorter(const std::string& name, std::uint64_t end) {
  return "file '" + name + "' ends before byte " + std::to_string(end);
}

// Identifies a file, to detect that it was replaced or changed.
struct Identity {
  dev_t device;
  ino_t number;
  off_t size;
  std::int64_t seconds, nanoseconds;
  explicit Identity(const struct stat& s)
      : device(s.st_dev),
        number(s.st_ino),
        size(s.st_size),
        seconds(s.st_mtim.tv_sec),
        nanoseconds(s.st_mtim.tv_nsec) {}
  friend bool operator==(const Identity&, const Identity&) = default;
};

// The descriptor of a regular file, and its identity.
Expected<std::pair<Descriptor, Identity>> open_regular(const std::string& path) {
  TROUPE_TRY(check_path(path));
  // O_NONBLOCK: opening a pipe without a writer would block.
  Descriptor descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!descriptor) return file_error(path, "open", errno);
  struct stat known {};
  if (::fstat(descriptor.get(), &known) != 0 || !S_ISREG(known.st_mode))
    return invalid_argument("'" + path + "' is no regular file");
  return std::pair(std::move(descriptor), Identity(known));
}

// Where a copy begins less than this behind its source, modulo a page, processors of AMD take up to
// four times as long. The kernel has the pages of a file at addresses of pages.
constexpr std::size_t kSlowly = 32, kPage = 4096;
constexpr std::size_t kFew = std::size_t{16} << 10;     // are copied in no time
constexpr std::size_t kDetour = std::size_t{64} << 10;  // stays near the processor
bool copies_slowly(std::uint64_t offset, const char* data) {
  const std::uint64_t behind = (reinterpret_cast<std::uintptr_t>(data) - offset) % kPage;
  return 0 < behind && behind < kSlowly;
}

class LocalFile final : public DataFile {
 public:
  LocalFile(std::string name, Descriptor descriptor, const Identity& identity)
      : name_(std::move(name)),
        identity_(identity),
        descriptor_(std::make_shared<const Descriptor>(std::move(descriptor))) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return std::uint64_t(identity_.size); }

  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    TROUPE_TRY(const auto descriptor, opened());
    const std::uint64_t end = offset + out.size();
    if (out.size() > kFew && copies_slowly(offset, out.data()))
      if (const std::unique_ptr<char[]> memory{new (std::nothrow) char[kDetour + kPage]})
        return read_by_detour(descriptor->get(), offset, out, end, memory.get());
    return read_part(descriptor->get(), offset, out, end);
  }

  void rest() const override {
    const std::lock_guard lock(mutex_);
    descriptor_.reset();
  }

 private:
  // Shared, because one thread may read while another calls rest().
  using Shared = std::shared_ptr<const Descriptor>;
  Expected<Shared> opened() const {
    const std::lock_guard lock(mutex_);
    if (descriptor_) return descriptor_;
    TROUPE_TRY(auto again, open_regular(name_));
    if (again.second != identity_)
      return failed_precondition("file '" + name_ + "' has changed since it was opened");
    descriptor_ = std::make_shared<const Descriptor>(std::move(again.first));
    return descriptor_;
  }

  // Of a read up to `end`, which an error names.
  Status read_part(int descriptor, std::uint64_t offset, std::span<char> out,
                   std::uint64_t end) const {
    while (!out.empty()) {
      const ssize_t n = ::pread(descriptor, out.data(), out.size(), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return file_error(name_, "read", errno);
      if (n == 0) return failed_precondition(shorter(name_, end));
      offset += std::uint64_t(n);
      out = out.subspan(std::size_t(n));
    }
    return ok_status();
  }

  Status read_by_detour(int descriptor, std::uint64_t offset, std::span<char> out,
                        std::uint64_t end, char* memory) const {
    // Where neither what arrives is copied slowly nor what leaves.
    char* const detour =
        memory + (offset + 2 * kSlowly - reinterpret_cast<std::uintptr_t>(memory)) % kPage;
    while (!out.empty()) {
      const std::span part = out.first(std::min(out.size(), kDetour));
      TROUPE_TRY(read_part(descriptor, offset, {detour, part.size()}, end));
      std::memcpy(part.data(), detour, part.size());
      offset += part.size();
      out = out.subspan(part.size());
    }
    return ok_status();
  }

  std::string name_;
  Identity identity_;
  mutable std::mutex mutex_;
  mutable Shared descriptor_;  // none: at rest
};

class MemoryFile final : public DataFile {
 public:
  MemoryFile(std::string name, std::string content)
      : name_(std::move(name)), content_(std::move(content)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    if (offset > content_.size() || out.size() > content_.size() - offset)
      return failed_precondition(shorter(name_, offset + out.size()));
    if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
    return ok_status();
  }

 private:
  std::string name_, content_;
};

}  // namespace

Expected<DataFilePtr> open_local_file(const std::string& path) {
  TROUPE_TRY(auto opened, open_regular(path));
  return DataFilePtr(std::make_shared<LocalFile>(path, std::move(opened.first), opened.second));
}

Expected<std::vector<FolderEntry>> list_local_folder(const std::string& path) {
  TROUPE_TRY(check_path(path));
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return file_error(path, "open folder", errno);
  std::vector<FolderEntry> entries;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr && errno != 0) return file_error(path, "read folder", errno);
    if (entry == nullptr) break;
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    bool is_folder = entry->d_type == DT_DIR;
    if (entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN) {
      struct stat known {};
      is_folder = ::stat((path + "/" + name).c_str(), &known) == 0 && S_ISDIR(known.st_mode);
    }
    entries.push_back({name, is_folder});
  }
  std::sort(entries.begin(), entries.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return entries;
}

DataFilePtr memory_file(std::string name, std::string content) {
  return std::make_shared<MemoryFile>(std::move(name), std::move(content));
}

Expected<DataFilePtr> open_plain_or_packed(const std::string& path, OpenDataFile open) {
  auto plain = open(path);
  if (plain.ok() || plain.status().code() != Code::not_found) return plain;
  auto packed = open(path + ".gz");
  if (packed.ok() || packed.status().code() != Code::not_found) return packed;
  return plain;
}

Status in_file(const Status& status, const DataFile& file) {
  return status.in("in file '" + file.name() + "'");
}

Expected<bool> is_gzip(const DataFile& file, std::uint64_t offset) {
  char start[2] = {};
  if (offset + sizeof start > file.size()) return false;
  TROUPE_TRY(file.read_at(offset, start));
  return start[0] == '\x1f' && start[1] == '\x8b';
}

}  // namespace troupe
