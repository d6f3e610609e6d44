// One run of a program under `troupe run`, which somebody disturbs from outside.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "actors/job/job_folder.hpp"
#include "apps/chaos/failing_syncs.hpp"
#include "core/status.hpp"

namespace troupe {

// Sleeps for so long, or until a stop is asked for.
void pause_for(const std::stop_token& stop, std::chrono::milliseconds time);

// A job in a folder of its own. All of its processes are killed with it. One thread.
class ChaosJob {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPatience{120};  // for the next step, and for the end

  struct Options {
    std::vector<std::string> run = {};  // more options of `troupe run`
    bool hold_syncs = false;            // for syncs()
  };
  // Throws Error: those of start_process and FailingSyncs::start.
  ChaosJob(std::string folder, const std::vector<std::string>& program, const Options& options);
  ChaosJob(std::string folder, const std::vector<std::string>& program)
      : ChaosJob(std::move(folder), program, Options()) {}
  ~ChaosJob();
  ChaosJob(const ChaosJob&) = delete;
  ChaosJob& operator=(const ChaosJob&) = delete;

  std::string job() const { return folder_ + "/job"; }
  pid_t supervisor() const { return supervisor_; }
  // The program, and what it started; 0 and empty while there is none.
  pid_t program() const;
  std::vector<pid_t> workers() const;
  std::vector<pid_t> all() const;  // the program first

  std::uint64_t step();
  std::uint64_t recoveries();  // of its present life
  bool has_checkpoint() const { return !JobFolder::position(job()).checkpoint.empty(); }
  std::int64_t lives() const;
  // Of the variables in its last checkpoint; empty: there is none.
  std::string tensors_sha256() const;
  // The last that it printed on stderr.
  std::string said() const;

  // The exit code, once it has ended.
  std::optional<int> end();
  // Looks until it is so. False: the job has ended, or patience is over.
  bool wait_until(const std::function<bool()>& there);
  // Its exit code; -1 if it has not ended within `patience`.
  int wait(Clock::duration patience = kPatience);

  // Null, but with hold_syncs.
  FailingSyncs* syncs() { return syncs_.get(); }
  // Goes on beside the job until it returns; asked to stop when the job is over.
  void meanwhile(std::function<void(const std::stop_token&)> doing);

 private:
  const std::string folder_;
  pid_t supervisor_ = -1;
  std::optional<int> end_;
  std::unique_ptr<const ProgressPage> page_;
  std::unique_ptr<FailingSyncs> syncs_;
  struct Beside {
    std::shared_ptr<std::atomic<bool>> over;
    std::jthread thread;
  };
  std::vector<Beside> beside_;
};

}  // namespace troupe
