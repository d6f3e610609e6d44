// What a job keeps with its last commit, for a program that resumes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The part of JobPlace that programs write. Part of the coordinator; no clock, no messages.
//
// A program that goes on from a restored state must ask for its notes before it writes anything: if
// it simply started from the beginning, it would do everything twice.
class Journal {
 public:
  // The job goes on from `place`, whose state a run has restored.
  void resume(JobPlace place);
  // A run was decided; null: it had no note, and the last one stays.
  void commit(const std::shared_ptr<const std::string>& note, std::vector<Tensor> fetches);
  // The program notes its progress without a commit.
  void mark(std::string note, std::uint64_t draws);
  // Something was done once: recorded as of the last commit, with the draws since.
  void done(std::string name, std::uint64_t draws);

  // Whether the program writes notes. If not, its place is the job's.
  bool noted() const { return note_ && !note_->empty(); }
  // The program asks for the place.
  void asked() { unasked_ = false; }
  // Whether the program was resumed and has not asked.
  bool unasked() const { return unasked_; }
  void write_to(JobPlace& place) const;
  // The draws after its commit that a resumed place already includes.
  std::uint64_t resumed_draws() const { return resumed_draws_; }

 private:
  std::shared_ptr<const std::string> note_;
  std::set<std::string> once_;
  std::vector<Tensor> fetches_;
  std::uint64_t draws_ = 0, resumed_draws_ = 0;
  bool unasked_ = false;
};

}  // namespace troupe
