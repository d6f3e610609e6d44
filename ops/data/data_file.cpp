#include "ops/data/data_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace troupe {

namespace {

Status file_error(const std::string& name, const char* what, int error) {
  const std::string text = std::string("cannot ") + what + " '" + name + "': " + strerror(error);
  if (error == ENOENT || error == ENOTDIR) return not_found(text);
  return error == EACCES || error == EPERM ? failed_precondition(text) : data_loss(text);
}

Status ends_early(const std::string& name, std::uint64_t offset, std::size_t wanted) {
  return data_loss("file '" + name + "' ends before byte " + std::to_string(offset + wanted));
}

class LocalFile final : public DataFile {
 public:
  LocalFile(std::string name, int descriptor, std::uint64_t size)
      : name_(std::move(name)), descriptor_(descriptor), size_(size) {}
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;
  ~LocalFile() override { ::close(descriptor_); }

  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return size_; }

  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    while (!out.empty()) {
      const ssize_t n = ::pread(descriptor_, out.data(), out.size(), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return file_error(name_, "read", errno);
      if (n == 0) return ends_early(name_, offset, out.size());
      offset += std::uint64_t(n);
      out = out.subspan(std::size_t(n));
    }
    return ok_status();
  }

 private:
  std::string name_;
  int descriptor_;
  std::uint64_t size_;
};

class MemoryFile final : public DataFile {
 public:
  MemoryFile(std::string name, std::string content)
      : name_(std::move(name)), content_(std::move(content)) {}
  const std::string& name() const override { return name_; }
  std::uint64_t size() const override { return content_.size(); }
  Status read_at(std::uint64_t offset, std::span<char> out) const override {
    if (offset > content_.size() || out.size() > content_.size() - offset)
      return ends_early(name_, offset, out.size());
    if (!out.empty()) std::memcpy(out.data(), content_.data() + offset, out.size());
    return ok_status();
  }

 private:
  std::string name_, content_;
};

}  // namespace

Expected<DataFilePtr> open_local_file(const std::string& path) {
  // Opening a pipe without a writer would wait for one.
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return file_error(path, "open", errno);
  struct stat known {};
  if (::fstat(descriptor, &known) != 0 || !S_ISREG(known.st_mode)) {
    ::close(descriptor);
    return invalid_argument("'" + path + "' is no regular file");
  }
  return DataFilePtr(std::make_shared<LocalFile>(path, descriptor, std::uint64_t(known.st_size)));
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

Expected<bool> is_gzip(const DataFile& file) {
  char start[2] = {};
  if (file.size() < sizeof start) return false;
  TROUPE_TRY(file.read_at(0, start));
  return start[0] == '\x1f' && start[1] == '\x8b';
}

}  // namespace troupe
