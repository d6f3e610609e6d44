// The folder of a job that a supervisor keeps running.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/status.hpp"

namespace troupe {

// What a job shows while it runs: a page, JOB/progress, which the job and its readers map. It stays
// when a life ends. Plain numbers, each of them atomic.
struct JobProgress {
  static constexpr std::uint64_t kMagic = 0x33676f7270757274;
  std::atomic<std::uint64_t> magic, step, until, recoveries, process;
  std::atomic<std::uint64_t> moved_ms;  // when `step` changed last: coarse_now_ns() / 1e6
  std::atomic<std::uint64_t> pace;      // Pace::packed() of this life
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

class ProgressPage {
 public:
  // Makes that of the job in the folder. Null: it cannot be made or mapped.
  static std::unique_ptr<ProgressPage> write(const std::string& folder);
  // Null: there is none, or it is no such page.
  static std::unique_ptr<const ProgressPage> read(const std::string& folder);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  JobProgress* operator->() { return page_; }
  const JobProgress* operator->() const { return page_; }

 private:
  explicit ProgressPage(JobProgress* page) : page_(page) {}
  static JobProgress* map(const std::string& folder, bool write);
  JobProgress* const page_;
};

// What a supervisor and its program share: the lock (one supervisor at a time), the log of the
// program's lives, the error that ended the last one, the position of the job, and its checkpoints.
//
// The program and all processes that it starts inherit the lock: the last of them releases it.
class JobFolder {
 public:
  // The environment variable of the program that names the folder.
  static constexpr const char* kVariable = "TROUPE_JOB";
  static constexpr const char* kCheckpoints = "checkpoints";
  static constexpr const char* kLives = "lives.log";
  static constexpr const char* kLock = "lock";
  // The folder of this process's supervisor; empty: there is none.
  static std::string of_this_process();

  // Takes the lock; makes the folder (mode 0700) if there is none. failed_precondition: it is on
  // NFS, SMB or FUSE, where locks of other machines are unreliable; another supervisor, or a
  // process of one, has the lock; it has files and is no job's folder; it cannot be made or
  // written.
  static Expected<std::unique_ptr<JobFolder>> open(const std::string& path);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }  // absolute
  // Whether the lock is still that of the path: false if the folder was removed or moved.
  bool is_there() const;
  // Appends a line to the log of lives: the fields of a JSON object, to which it adds the time.
  // data_loss: it could not be written, e.g. because the disk is full.
  Status log(const nlohmann::ordered_json& fields) const;

  // How far a job has got.
  struct Position {
    std::uint64_t step = 0;
    std::string checkpoint;  // of that step; empty: none
  };
  // Of the job in this folder: as reported, or its newest checkpoint in kCheckpoints.
  static Position position(const std::string& folder);
  // Reports to the supervisor of this process, if there is one, that a checkpoint is written.
  static void tell_position(const Position& position);
  // Notes durably that checkpoints in `dir`, outside of the folder of this process's supervisor,
  // are its job's, so that a later life goes on from them. Without a supervisor it does nothing.
  // Before the first one is written, as a life may end at any moment.
  static Status claim(const std::string& dir);
  // Whether a life of this process's job has claimed `dir`.
  static bool claims(const std::string& dir);

  struct LastError {
    std::string code, report;  // empty: there is none
  };
  // Removes and returns the error that a life left (write_last_error in core/uncaught.hpp).
  LastError take_error() const;

 private:
  JobFolder() = default;
  std::string path_;
  int lock_ = -1, log_ = -1;
};

}  // namespace troupe
