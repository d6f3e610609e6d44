#include "serialization/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>
#include <random>

#include "core/descriptor.hpp"
#include "core/held_signal.hpp"
#include "core/name.hpp"

namespace troupe {
namespace {

Status failed(std::string_view what, const std::string& path, int error) {
  std::string text = "cannot " + std::string(what) + " '" + path + "': " + std::strerror(error);
  switch (error) {
    case ENOENT:
      return not_found(text);
    case EEXIST:
      return already_exists(text);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
      return resource_exhausted(text);
    case EACCES:
    case EPERM:
    case EROFS:
    case ENOTEMPTY:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return failed_precondition(text);
    default:
      return internal_error(text);
  }
}
Status failed(std::string_view what, const std::string& path) { return failed(what, path, errno); }

std::string directory_of(const std::string& path) {
  std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

class DiskWriter : public WritableFile {
 public:
  DiskWriter(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Status append(std::span<const std::byte> bytes) override {
    const HeldSignal limit(SIGXFSZ);
    while (!bytes.empty()) {
      ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("write", path_);
      bytes = bytes.subspan(std::size_t(n));
    }
    return ok_status();
  }
  // Never repeated after a failure: the kernel may have dropped the pages and then reports success.
  Status sync() override { return ::fsync(fd_.get()) == 0 ? ok_status() : failed("sync", path_); }

 private:
  Descriptor fd_;
  std::string path_;
};

class DiskReader : public ReadableFile {
 public:
  DiskReader(Descriptor fd, std::string path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, std::span<std::byte> out) override {
    while (!out.empty()) {
      ssize_t n = ::pread(fd_.get(), out.data(), out.size(), off_t(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return failed("read", path_);
      if (n == 0) return data_loss("'" + path_ + "' ends too early");
      out = out.subspan(std::size_t(n));
      offset += std::uint64_t(n);
    }
    return ok_status();
  }

 private:
  Descriptor fd_;
  std::string path_;
  std::uint64_t size_;
};

class Disk : public FileSystem {
 public:
  Expected<std::unique_ptr<WritableFile>> create(const std::string& path) override {
    TROUPE_TRY(check_path(path));
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!fd) return failed("create", path);
    return std::unique_ptr<WritableFile>(new DiskWriter(std::move(fd), path));
  }

  // O_NONBLOCK: opening a pipe without a writer would block.
  Expected<std::unique_ptr<ReadableFile>> open(const std::string& path) override {
    TROUPE_TRY(check_path(path));
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return failed("open", path, errno == ENOTDIR ? ENOENT : errno);
    struct stat info;
    if (::fstat(fd.get(), &info) != 0) return failed("look at", path);
    if (!S_ISREG(info.st_mode)) return failed_precondition("'" + path + "' is no regular file");
    return std::unique_ptr<ReadableFile>(
        new DiskReader(std::move(fd), path, std::uint64_t(info.st_size)));
  }

  Status make_dirs(const std::string& path) override {
    TROUPE_TRY(check_path(path));
    for (std::size_t at = path.find('/', 1);; at = path.find('/', at + 1)) {
      std::string part = path.substr(0, at);
      Status made = make_dir(part);
      if (made.ok()) made = sync_dir(directory_of(part));
      if (!made.ok() && made.code() != Code::already_exists) return made;
      if (at == std::string::npos) break;
    }
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return failed("look at", path);
    return S_ISDIR(info.st_mode) ? ok_status() : failed("make", path, ENOTDIR);
  }

  Status make_dir(const std::string& path) override {
    return ::mkdir(path.c_str(), 0755) == 0 ? ok_status() : failed("make", path);
  }
  Status rename(const std::string& from, const std::string& to) override {
    return ::rename(from.c_str(), to.c_str()) == 0 ? ok_status() : failed("rename to", to);
  }
  Status exchange(const std::string& a, const std::string& b) override {
    int done = ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
    if (done == 0) return ok_status();
    if (errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP)
      return unimplemented("cannot swap '" + a + "' and '" + b + "' on this file system");
    return failed("replace", b);
  }
  Status sync_dir(const std::string& path) override {
    Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd || ::fsync(fd.get()) != 0) return failed("sync", path);
    return ok_status();
  }
  Expected<std::vector<std::string>> list(const std::string& path) override {
    TROUPE_TRY(check_path(path));
    std::unique_ptr<DIR, int (*)(DIR*)> dir(::opendir(path.c_str()), &::closedir);
    if (!dir) return failed("list", path);
    std::vector<std::string> out;
    errno = 0;
    while (const dirent* entry = ::readdir(dir.get())) {
      std::string name = entry->d_name;
      if (name != "." && name != "..") out.push_back(std::move(name));
    }
    if (errno != 0) return failed("list", path);
    std::sort(out.begin(), out.end());
    return out;
  }
  Status remove(const std::string& path) override {
    return ::unlink(path.c_str()) == 0 ? ok_status() : failed("remove", path);
  }
  Status remove_dir(const std::string& path) override {
    struct stat info;
    if (::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode)) return remove(path);
    TROUPE_TRY(auto names, list(path));
    for (const std::string& name : names) TROUPE_TRY(remove(path + "/" + name));
    return ::rmdir(path.c_str()) == 0 ? ok_status() : failed("remove", path);
  }
  Expected<std::string> place_of(const std::string& path) override {
    TROUPE_TRY(check_path(path));
    struct stat info;
    if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
      return failed_precondition("'" + path + "' is " + kind_of(info.st_mode) +
                                 ": a file that is written there would replace it");
    // Link by link, because the file at the end may not exist yet.
    std::string place = path;
    for (int links = 0; ::lstat(place.c_str(), &info) == 0 && S_ISLNK(info.st_mode); ++links) {
      if (links == kMostLinks) return failed("follow", path, ELOOP);
      TROUPE_TRY(const std::string target, read_link(place));
      place = target.starts_with('/') ? target : directory_of(place) + "/" + target;
    }
    return place;
  }

 private:
  static constexpr int kMostLinks = 40;

  static const char* kind_of(mode_t mode) {
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISSOCK(mode)) return "a socket";
    return "a device";
  }
  static Expected<std::string> read_link(const std::string& path) {
    std::string target(PATH_MAX, '\0');
    const ssize_t size = ::readlink(path.c_str(), target.data(), target.size());
    if (size < 0) return failed("follow", path);
    target.resize(std::size_t(size));
    return target;
  }
};

}  // namespace

FileSystem& disk() {
  static Disk instance;
  return instance;
}

std::string name_beside(const std::string& path, const std::string& suffix) {
  return directory_of(path) + "/." + path.substr(path.rfind('/') + 1) + "." + suffix;
}

Status write_synced(FileSystem& files, const std::string& path,
                    FunctionRef<Status(WritableFile&)> write) {
  Status old = files.remove(path);
  if (!old.ok() && old.code() != Code::not_found) return old;
  auto file = files.create(path);
  if (!file.ok()) return file.status();
  Status written = write(**file);
  if (written.ok()) written = (*file)->sync();
  file->reset();
  if (!written.ok()) (void)files.remove(path);  // the first error is reported
  return written;
}

Status put_in_place(FileSystem& files, const std::string& written, const std::string& path) {
  if (Status moved = files.rename(written, path); !moved.ok()) {
    (void)files.remove(written);
    return moved;
  }
  return files.sync_dir(directory_of(path));
}

Status write_file(FileSystem& files, const std::string& path,
                  FunctionRef<Status(WritableFile&)> write) {
  // The name is unique to this write: others may write the same file concurrently, also on other
  // machines, whose processes have the same numbers.
  static std::atomic<std::uint64_t> writes{0};
  static const std::string process = random_text();
  TROUPE_TRY(const std::string place, files.place_of(path));
  const std::string written = name_beside(place, process + "." + std::to_string(getpid()) + "." +
                                                     std::to_string(writes.fetch_add(1)) + ".tmp");
  TROUPE_TRY(write_synced(files, written, write));
  return put_in_place(files, written, place);
}

std::string random_text() {
  std::random_device random;
  return std::to_string((std::uint64_t(random()) << 32) | random());
}

std::string place_to_read(FileSystem& files, const std::string& path) {
  auto place = files.place_of(path);
  return place.ok() ? *std::move(place) : path;
}

Expected<std::vector<std::byte>> read_file(FileSystem& files, const std::string& path,
                                           std::uint64_t most) try {
  TROUPE_TRY(auto file, files.open(path));
  if (file->size() > most)
    return resource_exhausted("'" + path + "' has " + std::to_string(file->size()) +
                              " bytes, more than " + std::to_string(most));
  std::vector<std::byte> out(file->size());
  TROUPE_TRY(file->read_at(0, out));
  return out;
} catch (const std::bad_alloc&) {
  return resource_exhausted("no memory to read '" + path + "'");
}

}  // namespace troupe
