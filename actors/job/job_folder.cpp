#include "actors/job/job_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "actors/job/json_text.hpp"
#include "actors/processes/proc.hpp"
#include "core/descriptor.hpp"
#include "core/held_signal.hpp"
#include "core/log.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {
namespace {

constexpr const char* kPosition = "position.json";
constexpr std::size_t kMostOfAText = 16 << 20;  // that a program left

Status cannot(std::string_view what, const std::string& path, int error) {
  return failed_precondition(fmt::format("cannot {} '{}': {}", what, path, std::strerror(error)));
}

Status local(const std::string& path) {
  constexpr std::pair<unsigned long, const char*> kRemote[] = {
      {NFS_SUPER_MAGIC, "NFS"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"}, {0x65735546, "FUSE"}};
  struct statfs system {};
  if (statfs(path.c_str(), &system) != 0) return cannot("look at", path, errno);
  for (const auto& [magic, name] : kRemote)
    if ((unsigned long)system.f_type == magic)
      return failed_precondition(fmt::format(
          "'{}' is on {}, where two supervisors may not see each other: name a folder on a disk of "
          "this machine",
          path, name));
  return ok_status();
}

// Of a file that any program may have put there; empty without one.
std::string read_text(const std::string& path) {
  const auto bytes = read_file(disk(), path, kMostOfAText);
  return bytes.ok() ? std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size())
                    : std::string();
}

}  // namespace

std::string JobFolder::of_this_process() {
  const char* folder = std::getenv(kVariable);
  return folder == nullptr ? std::string() : folder;
}

Expected<std::unique_ptr<JobFolder>> JobFolder::open(const std::string& path) {
  std::unique_ptr<JobFolder> folder(new JobFolder);
  TROUPE_TRY(disk().make_dirs(path));
  TROUPE_TRY(local(path));
  std::unique_ptr<char, decltype(&std::free)> whole(realpath(path.c_str(), nullptr), std::free);
  if (!whole) return cannot("find", path, errno);
  folder->path_ = whole.get();
  const std::string lock = folder->path_ + "/" + kLock, log = folder->path_ + "/" + kLives;
  std::error_code none;
  if (access(log.c_str(), F_OK) != 0 && access(lock.c_str(), F_OK) != 0 &&
      !std::filesystem::is_empty(folder->path_, none))
    return failed_precondition(fmt::format(
        "'{}' has files and is not the folder of a job: name a new one, which is made", path));
  folder->lock_ = ::open(lock.c_str(), O_RDWR | O_CREAT, 0600);
  if (folder->lock_ < 0) return cannot("open", lock, errno);
  if (flock(folder->lock_, LOCK_EX | LOCK_NB) != 0)
    return errno == EWOULDBLOCK
               ? failed_precondition(fmt::format(
                     "the job in '{}' is running already, or processes of it are still ending",
                     path))
               : cannot("lock", lock, errno);
  if (!folder->is_there())
    return failed_precondition(fmt::format("somebody removed '{}' at this moment", path));
  if (chmod(folder->path_.c_str(), 0700) != 0) return cannot("close to others", path, errno);
  const HeldSignal limit(SIGXFSZ);
  const std::string holder = fmt::format("{} {}\n", getpid(), start_of(getpid()));
  if (ftruncate(folder->lock_, 0) != 0 ||
      pwrite(folder->lock_, holder.data(), holder.size(), 0) != ssize_t(holder.size()))
    TROUPE_LOG(warning, "job",  // by which `troupe stop` would find it
               fmt::format("cannot write '{}': {}", lock, std::strerror(errno)));
  folder->log_ = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (folder->log_ < 0) return cannot("open", log, errno);
  return folder;
}

JobFolder::~JobFolder() {
  if (log_ >= 0) close(log_);
  if (lock_ >= 0) close(lock_);
}

bool JobFolder::is_there() const {
  struct stat ours {
  }, there{};
  return fstat(lock_, &ours) == 0 && stat((path_ + "/" + kLock).c_str(), &there) == 0 &&
         ours.st_dev == there.st_dev && ours.st_ino == there.st_ino;
}

Status JobFolder::log(const nlohmann::ordered_json& fields) const {
  nlohmann::ordered_json line = {{"time", std::time(nullptr)}};
  line.update(fields);
  const std::string text = json_text(line) + "\n";
  const HeldSignal limit(SIGXFSZ);
  const off_t before = lseek(log_, 0, SEEK_END);
  const ssize_t written = ::write(log_, text.data(), text.size());
  if (written == ssize_t(text.size())) return ok_status();
  const int error = written < 0 ? errno : ENOSPC;
  // The next line begins where this one did.
  if (written > 0 && before >= 0) (void)!ftruncate(log_, before);
  return data_loss(fmt::format("cannot write '{}/{}': {}", path_, kLives, std::strerror(error)));
}

JobFolder::Position JobFolder::position(const std::string& folder) {
  Position position;
  const auto told = nlohmann::json::parse(read_text(folder + "/" + kPosition), nullptr, false);
  if (told.is_object() && told.contains("step") && told["step"].is_number_unsigned() &&
      told.contains("checkpoint") && told["checkpoint"].is_string())
    position = {told["step"].get<std::uint64_t>(), told["checkpoint"].get<std::string>()};
  const auto all = list_checkpoints(folder + "/" + kCheckpoints);
  if (all.ok() && !all->empty() && all->back().step >= position.step)
    position = {all->back().step, all->back().path};
  return position;
}

void JobFolder::tell_position(const Position& position) {
  const std::string folder = of_this_process();
  if (folder.empty()) return;
  const std::string path = folder + "/" + kPosition, draft = fmt::format("{}.{}", path, getpid());
  const std::string text = json_text(
      nlohmann::ordered_json{{"step", position.step}, {"checkpoint", position.checkpoint}});
  const HeldSignal limit(SIGXFSZ);
  const Descriptor file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (file && ::write(file.get(), text.data(), text.size()) == ssize_t(text.size()) &&
      rename(draft.c_str(), path.c_str()) == 0)
    return;
  // Whoever looks, and the budget of restarts, take the job to be where it was before.
  TROUPE_LOG(warning, "job", fmt::format("cannot write '{}': {}", path, std::strerror(errno)));
  unlink(draft.c_str());
}

namespace {

// A line for each folder.
std::string claims_of(const std::string& folder) { return read_text(folder + "/claims"); }

// As others name it, too.
std::string line_of(const std::string& dir) {
  std::error_code none;
  return std::filesystem::weakly_canonical(dir, none).string() + "\n";
}

}  // namespace

Status JobFolder::claim(const std::string& dir) {
  const std::string folder = of_this_process();
  if (folder.empty() || claims(dir)) return ok_status();
  const std::string text = claims_of(folder) + line_of(dir);
  return write_file(disk(), folder + "/claims",
                    [&](WritableFile& file) { return file.append(std::as_bytes(std::span(text))); })
      .in("noting whose the checkpoints in '" + dir + "' are");
}

bool JobFolder::claims(const std::string& dir) {
  const std::string folder = of_this_process();
  return !folder.empty() &&
         ("\n" + claims_of(folder)).find("\n" + line_of(dir)) != std::string::npos;
}

JobProgress* ProgressPage::map(const std::string& folder, bool write) {
  const std::string path = folder + "/progress";
  const int file =
      ::open(path.c_str(),
             (write ? O_RDWR | O_CREAT : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  if (file < 0) return nullptr;
  struct stat status {};
  void* page = MAP_FAILED;
  const HeldSignal limit(SIGXFSZ);
  // A page that is not there would end whoever touches it.
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
      (std::size_t(status.st_size) >= sizeof(JobProgress) ||
       (write && posix_fallocate(file, 0, sizeof(JobProgress)) == 0)))
    page = mmap(nullptr, sizeof(JobProgress), write ? PROT_READ | PROT_WRITE : PROT_READ,
                MAP_SHARED, file, 0);
  close(file);
  return page == MAP_FAILED ? nullptr : static_cast<JobProgress*>(page);
}

std::unique_ptr<ProgressPage> ProgressPage::write(const std::string& folder) {
  JobProgress* page = map(folder, true);
  if (page == nullptr) return nullptr;
  page->pace = 0;  // of another life
  page->magic = JobProgress::kMagic;
  page->process = std::uint64_t(getpid());
  return std::unique_ptr<ProgressPage>(new ProgressPage(page));
}

std::unique_ptr<const ProgressPage> ProgressPage::read(const std::string& folder) {
  std::unique_ptr<const ProgressPage> page;
  if (JobProgress* mapped = map(folder, false)) page.reset(new ProgressPage(mapped));
  if (page && (*page)->magic != JobProgress::kMagic) page.reset();
  return page;
}

ProgressPage::~ProgressPage() { munmap(page_, sizeof(JobProgress)); }

JobFolder::LastError JobFolder::take_error() const {
  const std::string path = path_ + "/error", text = read_text(path);
  unlink(path.c_str());
  const std::size_t end = text.find('\n');
  if (end == text.npos) return {};
  std::string report = text.substr(end + 1);
  while (report.ends_with('\n')) report.pop_back();
  return {text.substr(0, end), report};
}

}  // namespace troupe
