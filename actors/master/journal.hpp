// What a job keeps with its last commit, for a program that comes back.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The part of JobPlace that programs write. Part of the coordinator; no clock, no messages.
//
// A program that goes on from a restored state must ask for what it wrote down before it writes
// anything else: one that begins at its first line again would do twice what is done.
class Journal {
 public:
  // The job goes on from `place`, whose state a run has restored.
  void resume(JobPlace place);
  // A run was decided; null: it had no note, and the one before stays.
  void commit(const std::shared_ptr<const std::string>& note, std::vector<Tensor> fetches);
  // The program has come further since, without a commit.
  void mark(std::string note, std::uint64_t draws);
  // This was done, and is so as of the last commit, with what was drawn since.
  void done(std::string name, std::uint64_t draws);

  // The program says where it is. Else it is where the job is.
  bool noted() const { return note_ && !note_->empty(); }
  // The program has asked for the place.
  void asked() { unasked_ = false; }
  // It has come back, and has not.
  bool unasked() const { return unasked_; }
  void write_to(JobPlace& place) const;
  // Of a place that was resumed: what was drawn from its commit on before.
  std::uint64_t resumed_draws() const { return resumed_draws_; }

 private:
  std::shared_ptr<const std::string> note_;
  std::set<std::string> once_;
  std::vector<Tensor> fetches_;
  std::uint64_t draws_ = 0, resumed_draws_ = 0;
  bool unasked_ = false;
};

}  // namespace troupe
