// The folder of a job that somebody keeps running.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/status.hpp"

namespace troupe {

// What a job shows to whoever looks while it runs: a page that both map, JOB/progress. It stays
// when a life ends. Plain numbers, each of which is whole.
struct JobProgress {
  static constexpr std::uint64_t kMagic = 0x32676f7270757274;
  std::atomic<std::uint64_t> magic, step, until, recoveries, process;
  std::atomic<std::uint64_t> moved_ms;  // when the step became this one: coarse_now_ns() / 1e6
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
};

class ProgressPage {
 public:
  // Of the job in that folder. Null: it cannot be made or mapped.
  static std::unique_ptr<ProgressPage> write(const std::string& folder);
  // Null: there is none, or it is something else.
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

// Where a supervisor and its program meet: the lock (one supervisor at a time), the log of the
// program's lives, the error that ended the last one, how far the job is, and its checkpoints.
//
// The program and all that it starts inherit the lock: it is held until the last of them is gone.
class JobFolder {
 public:
  // Set for the program: the folder.
  static constexpr const char* kVariable = "TROUPE_JOB";
  static constexpr const char* kCheckpoints = "checkpoints";
  static constexpr const char* kLives = "lives.log";
  static constexpr const char* kLock = "lock";
  // That of this process's supervisor; empty: nobody keeps it running.
  static std::string of_this_process();

  // Takes the lock; makes the folder (mode 0700) if there is none. failed_precondition: it is on
  // NFS, SMB or FUSE, where locks of other machines are not to be relied on; another supervisor has
  // it, or processes of one; it has files and is no job's; it cannot be made or written.
  static Expected<std::unique_ptr<JobFolder>> open(const std::string& path);
  ~JobFolder();
  JobFolder(const JobFolder&) = delete;
  JobFolder& operator=(const JobFolder&) = delete;

  const std::string& path() const { return path_; }  // absolute
  // Whether the lock is still that of the path: not if somebody removed or moved the folder.
  bool is_there() const;
  // Appends a line to the log of lives: the fields of a JSON object, to which it adds the time.
  // data_loss: it could not be written, e.g. because the disk is full.
  Status log(const nlohmann::ordered_json& fields) const;

  // How far a job is.
  struct Position {
    std::uint64_t step = 0;
    std::string checkpoint;  // of that step; empty: none
  };
  // Of the job in this folder: as told, or its newest checkpoint in kCheckpoints.
  static Position position(const std::string& folder);
  // For the supervisor of this process, if there is one: a checkpoint is written.
  static void tell_position(const Position& position);

  struct LastError {
    std::string code, report;  // empty: there is none
  };
  // Takes out the error that a life left (write_last_error in core/uncaught.hpp).
  LastError take_error() const;

 private:
  JobFolder() = default;
  std::string path_;
  int lock_ = -1, log_ = -1;
};

}  // namespace troupe
