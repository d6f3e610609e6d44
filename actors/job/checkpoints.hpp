// When a training run writes checkpoints, and what happens if one cannot be written.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <set>
#include <string>

#include "serialization/checkpoint.hpp"

namespace troupe {

// The checkpoints of one run. A full disk does not stop training: a failed write is reported, older
// checkpoints stay, and the next interval tries again. One owner, one thread; the caller passes the
// time.
class Checkpoints {
 public:
  using Instant = std::chrono::steady_clock::time_point;
  struct Policy {
    std::string directory;   // empty: none are written
    std::int64_t steps = 0;  // the interval in steps
    double seconds = 0;      // or in seconds
    // If both are 0: at most four a second, and so seldom that writing takes at most this share of
    // the time. If this is 0, too: only the last one.
    double share = 0;
    int keep = 3;
    bool nan = true;  // write variables with a NaN; false: such a try fails with out_of_range
  };
  // The result of one try.
  struct Written {
    Expected<CheckpointInfo> info;
    Instant::duration took{};
    CommitNumber commit = 0;  // that it contains; 0: it was not written
  };
  // The contents of a checkpoint: the data, and the shards that other processes wrote into its
  // draft.
  struct Contents {
    CheckpointData data;
    std::vector<CheckpointFile> shards = {};
  };

  explicit Checkpoints(Policy policy, FileSystem& files = disk());

  bool wanted() const { return !policy_.directory.empty(); }
  // Begins the run at `step`. `path`: the checkpoint of that step; empty: none.
  void begin(std::int64_t step, std::string path, Instant now);
  // Whether an interval has passed since the last try.
  bool due(std::int64_t step, Instant now) const;
  // Whether the newest good one is of this step.
  bool have(std::int64_t step) const { return !newest_.empty() && good_step_ == step; }
  // One try. After an error (from write_checkpoint) newest() is unchanged.
  Status write(std::int64_t step, const CheckpointData& data, Instant now);
  // The parts of a try; any thread may do the third. Begin (`took`: the time for collecting the
  // contents), make a draft into which processes write shards, write, end.
  void begin_try(std::int64_t step, Instant now, Instant::duration took = {});
  Expected<CheckpointDraft> draft() const {
    return CheckpointDraft::begin(policy_.directory, files_);
  }
  std::function<Written()> writing(CheckpointDraft draft,
                                   std::function<Expected<Contents>()> contents) const;
  Status end_try(std::int64_t step, const Written& written);
  bool refuses_nan() const { return !policy_.nan; }

  // Those with these files stay when the next one is written: the session may read them again.
  // Absolute paths, also of other folders.
  void spare(const std::set<std::string>& files);

  // The newest whole and durable checkpoint, written or resumed; empty: none.
  const std::string& newest() const { return newest_; }
  // Why the last try failed; ok if it did not.
  const Status& last() const { return last_; }
  int failures() const { return failures_; }

 private:
  const Policy policy_;
  FileSystem& files_;
  std::string newest_;
  std::set<std::string> spare_;
  Status last_;
  int failures_ = 0;
  std::int64_t good_step_ = 0, tried_step_ = 0;
  Instant tried_at_{};
  Instant::duration took_{}, last_took_{};  // so far, of the current try; of the last one
};

}  // namespace troupe
