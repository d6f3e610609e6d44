// When a training run writes checkpoints, and what becomes of one that cannot be written.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "serialization/checkpoint.hpp"

namespace troupe {

// The checkpoints of one run. A full disk is no reason to stop computing: what could not be written
// is told, the older ones stay, and the next interval tries again. One owner, one thread; it is
// told the time, and asks nobody.
class Checkpoints {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  struct Policy {
    std::string directory;   // empty: none are written
    std::int64_t steps = 0;  // one every so many steps
    double seconds = 0;      // or so many seconds
    // Both 0: four a second at most, and as seldom as makes tries take this share of the time; 0:
    // the last one only.
    double share = 0;
    int keep = 3;
    bool nan = true;  // variables with a NaN are written; else such a try fails with out_of_range
  };
  // One try, wherever it was done.
  struct Written {
    Expected<CheckpointInfo> info;
    Instant::duration took{};
    CommitNumber commit = 0;  // that it has; 0: it was not written
  };
  // What goes into one beside the shards that others wrote into its draft.
  struct Contents {
    CheckpointData data;
    std::vector<CheckpointFile> shards = {};
  };

  explicit Checkpoints(Policy policy, FileSystem& files = disk());

  bool wanted() const { return !policy_.directory.empty(); }
  // The run begins at `step`, with the checkpoint `path` of that step or without one.
  void begin(std::int64_t step, std::string path, Instant now);
  // An interval has passed since the last try.
  bool due(std::int64_t step, Instant now) const;
  // The newest good one is of this step.
  bool have(std::int64_t step) const { return !newest_.empty() && good_step_ == step; }
  // One try. After an error (that of write_checkpoint) newest() is what it was.
  Status write(std::int64_t step, const CheckpointData& data, Instant now);
  // Its parts, of which the third may be done by any thread: begun (what to write took so long),
  // a draft for who has something to write into it, written, over.
  void begin_try(std::int64_t step, Instant now, Instant::duration took = {});
  Expected<CheckpointDraft> draft() const {
    return CheckpointDraft::begin(policy_.directory, files_);
  }
  std::function<Written()> writing(CheckpointDraft draft,
                                   std::function<Expected<Contents>()> contents) const;
  Status end_try(std::int64_t step, const Written& written);
  bool refuses_nan() const { return !policy_.nan; }

  // The newest that is whole and durable, written or resumed; empty without one.
  const std::string& newest() const { return newest_; }
  // Why the last try failed; ok when it did not.
  const Status& last() const { return last_; }
  int failures() const { return failures_; }

 private:
  const Policy policy_;
  FileSystem& files_;
  std::string newest_;
  Status last_;
  int failures_ = 0;
  std::int64_t good_step_ = 0, tried_step_ = 0;
  Instant tried_at_{};
  Instant::duration took_{}, last_took_{};  // the try under way so far; the last one
};

}  // namespace troupe
