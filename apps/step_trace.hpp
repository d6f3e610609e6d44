// What all processes do in some steps of a training loop: `troupe train --trace`, `--logdir`.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>

#include "actors/client/session.hpp"
#include "core/status.hpp"

namespace troupe {

// Waits until the loop is warm, records so many steps, writes them. One loop, one thread. What goes
// wrong once training has begun never ends it: written() tells.
class StepTrace {
 public:
  // The first steps allocate and compile; of a run that is shorter than these and those to be
  // recorded they are a part all the same.
  static constexpr std::int64_t kWarmSteps = 3;

  // Without a path there is no file. `recorded` is called with what was recorded, and the number of
  // steps that the loop had made before; with neither of them nothing is recorded.
  using Recorded = std::function<void(const Timeline& timeline, std::int64_t made)>;
  StepTrace(std::string path, std::int64_t steps, Recorded recorded = {})
      : path_(std::move(path)), steps_(steps), tell_(std::move(recorded)), wanted_(bool(tell_)) {}

  // Before training: makes the file, or empties it. not_found, failed_precondition or
  // resource_exhausted with the path when it cannot be written.
  Status open();
  // In front of each step: how many this loop has made, and how many it is to make in all.
  void before_step(Session& session, std::int64_t made, std::int64_t all);
  // After the last one, or one that failed: writes what there is.
  void finish(Session& session);

  // Why the file is not what it should be.
  const Status& written() const { return written_; }
  std::int64_t steps() const { return recorded_; }

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  void stop(Session& session);
  Status write(const Timeline& timeline);

  std::string path_;
  std::int64_t steps_;
  Recorded tell_;
  bool wanted_;  // and not recorded yet
  std::unique_ptr<std::FILE, Close> file_;
  bool recording_ = false;
  std::int64_t recorded_ = 0, made_before_ = 0;
  Status written_;
};

}  // namespace troupe
