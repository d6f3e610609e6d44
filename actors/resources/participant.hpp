// The common part of all resources in commits, aborts and cleanup.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/transaction.hpp"

namespace troupe {

// The base of a resource's state machine. An attempt leaves a `Log` with a number of keys. Staging
// turns a complete log into a `Record`, of which at most one is staged; committing applies it, in
// number order. `Output` is the machine's output type, which includes ResourceStaged.
//
// Numbers come from a coordinator that may be another process: a number that contradicts earlier
// ones is refused with a Status, and changes nothing.
template <class Log, class Record, class Output>
class Participant {
 public:
  // Answered with ResourceStaged when the log is complete and staged or, with StageOrder::apply,
  // when the staged record is applied. StageOrder::withdraw has no answer.
  void stage(const StageRequest& request, std::vector<Output>& out) {
    switch (request.order) {
      case StageOrder::withdraw:
        return withdraw(request);
      case StageOrder::apply:
        return apply(request, out);
      case StageOrder::stage:
        break;
    }
    if (staged_ && staged_->s < request.s) commit_staged(out);
    if (staged_ && staged_->s == request.s && staged_->attempt == request.attempt)
      return answer_stage(request, staged_->hash, ok_status(), out);
    const CommitNumber taken = staged_ ? staged_->s : committed_;
    if (request.s <= taken) return answer_stage(request, 0, contradiction(request.s, taken), out);
    pending_ = request;
    try_stage(out);
  }

  // The number of the newest decided run known to have touched this resource.
  CommitNumber committed() const { return committed_; }

 protected:
  struct Staged {
    CommitNumber s = 0;
    AttemptId attempt;
    std::uint64_t hash = 0;  // of keys, rules, types and shapes, in order
    Record record;
  };

  ~Participant() = default;
  virtual std::string name() const = 0;  // for errors
  virtual std::uint32_t keys_of(const Log& log) const = 0;
  // Whether a log with all its keys can be staged; if not, try_stage() must be called again.
  virtual bool ready_to_stage(const AttemptId&, Log&, std::vector<Output>&) { return true; }
  // The record, which can be applied without failure, with its hash; or why it cannot be staged.
  virtual Expected<std::pair<std::uint64_t, Record>> record_of(CommitNumber s,
                                                               const AttemptId& attempt,
                                                               Log log) = 0;
  // May fail only for changes outside the job.
  virtual Status commit(CommitNumber s, const AttemptId& attempt, Record record,
                        std::vector<Output>& out) = 0;
  // Called when a log or record will not be committed.
  virtual void dropped(Log&) {}
  virtual void withdrawn(Record&) {}
  virtual bool over(const AttemptId& attempt, const Log&) const { return live_.over(attempt); }

  Log* find_log(const AttemptId& attempt) {
    auto at = logs_.find(attempt);
    return at == logs_.end() ? nullptr : &at->second;
  }
  const Log* find_log(const AttemptId& attempt) const {
    auto at = logs_.find(attempt);
    return at == logs_.end() ? nullptr : &at->second;
  }

  // A snapshot R shows that all numbers up to R are decided.
  void learn(CommitNumber decided, std::vector<Output>& out) {
    if (staged_ && staged_->s <= decided) commit_staged(out);
  }

  // Called when a key was added.
  void try_stage(std::vector<Output>& out) {
    if (!pending_) return;
    if (load_ && load_->attempt == pending_->attempt) return stage_load(out);
    auto log = logs_.find(pending_->attempt);
    if ((log == logs_.end() ? 0 : keys_of(log->second)) < pending_->keys) return;
    if (log != logs_.end() && !ready_to_stage(pending_->attempt, log->second, out)) return;
    const StageRequest request = *std::exchange(pending_, {});
    Log mine;
    if (log != logs_.end()) {
      mine = std::move(log->second);
      logs_.erase(log);
    }
    auto record = record_of(request.s, request.attempt, std::move(mine));
    if (!record.ok()) return answer_stage(request, 0, record.status(), out);
    auto [hash, staged] = std::move(record).value();
    staged_ = Staged{request.s, request.attempt, hash, std::move(staged)};
    answer_stage(request, hash, ok_status(), out);
  }

  // Takes the number of a write that logs, stages and commits in one. No number can have been
  // granted while another is staged or requested.
  Status take_number(CommitNumber s) {
    if (s <= committed_) return aborted("number " + std::to_string(s) + " was used by another run");
    if (staged_ || pending_) return contradiction(s, staged_ ? staged_->s : pending_->s);
    committed_ = s;
    return ok_status();
  }

  // Applies what the list reports decided and drops what is over. False if the list is not newer.
  bool note(const LiveList& list, std::vector<Output>& out) {
    if (!list.newer_than(live_)) return false;
    live_ = list;
    learn(list.decided, out);
    if (staged_ && live_.over(staged_->attempt)) drop_staged();  // it will never be committed
    drop_over();
    return true;
  }

  void drop_over() {
    for (auto at = logs_.begin(); at != logs_.end();) {
      if (over(at->first, at->second)) {
        dropped(at->second);
        at = logs_.erase(at);
      } else {
        ++at;
      }
    }
    if (pending_ && live_.over(pending_->attempt)) pending_.reset();
    if (load_ && live_.over(load_->attempt)) load_.reset();
  }

  // The attempt restores a saved state: `record` will be staged instead of a log, as its only key
  // at this resource. failed_precondition if the resource has been used.
  Status load_at_commit(const AttemptId& attempt, std::uint64_t hash, Record record) {
    TROUPE_TRY(untouched());
    if (load_ && load_->attempt != attempt)
      return failed_precondition("another run puts a state into " + name());
    load_ = Load{attempt, hash, std::move(record)};
    return ok_status();
  }
  Status untouched() const {
    const bool used = std::any_of(logs_.begin(), logs_.end(),
                                  [&](const auto& log) { return keys_of(log.second) > 0; });
    if (committed_ == 0 && !used && !staged_) return ok_status();
    return failed_precondition(name() + " has been used: a state is put into a new one only");
  }

  // Prepares for a record that another copy of this resource has staged under that number. Refused
  // as by stage(); false if the record is already here.
  Expected<bool> make_way(CommitNumber s, const AttemptId& attempt, std::vector<Output>& out) {
    if (staged_ && staged_->s < s) commit_staged(out);
    if (staged_ && staged_->s == s && staged_->attempt == attempt) return false;
    const CommitNumber taken = staged_ ? staged_->s : committed_;
    if (s <= taken) return contradiction(s, taken);
    return true;
  }
  Status nothing_staged() const { return failed_precondition("nothing is staged at " + name()); }

  void drop_staged() {
    withdrawn(staged_->record);
    staged_.reset();
  }

  void forget_all() {
    for (auto& [attempt, log] : logs_) dropped(log);
    logs_.clear();
    if (staged_) drop_staged();
    pending_.reset();
    load_.reset();
  }

  // Whether a LiveList would change nothing here.
  bool at_rest() const { return logs_.empty() && !pending_ && !staged_ && !load_; }

  std::size_t staged_count() const { return (staged_ ? 1u : 0u) + (pending_ ? 1u : 0u); }

  CommitNumber committed_ = 0;  // see committed()
  LiveList live_;
  std::unordered_map<AttemptId, Log> logs_;
  std::optional<StageRequest> pending_;  // waits for keys
  std::optional<Staged> staged_;

 private:
  struct Load {
    AttemptId attempt;
    std::uint64_t hash = 0;
    Record record;
  };

  std::optional<Load> load_;
  Status applied_;  // of the newest commit

  void stage_load(std::vector<Output>& out) {
    const StageRequest request = *std::exchange(pending_, {});
    Load load = *std::exchange(load_, {});
    logs_.erase(load.attempt);
    staged_ = Staged{request.s, request.attempt, load.hash, std::move(load.record)};
    answer_stage(request, load.hash, ok_status(), out);
  }

  static void answer_stage(const StageRequest& request, std::uint64_t hash, Status status,
                           std::vector<Output>& out) {
    out.push_back(ResourceStaged{request.s, request.attempt, hash, std::move(status)});
  }

  Status contradiction(CommitNumber s, CommitNumber taken) const {
    return failed_precondition(name() + " was given number " + std::to_string(s) + " after " +
                               std::to_string(taken));
  }

  void withdraw(const StageRequest& request) {
    if (staged_ && staged_->s == request.s && staged_->attempt == request.attempt) drop_staged();
    if (pending_ && pending_->attempt == request.attempt) pending_.reset();
  }

  void apply(const StageRequest& request, std::vector<Output>& out) {
    learn(request.s, out);
    const bool here = request.s == committed_;
    answer_stage(request, 0, here ? applied_ : contradiction(request.s, committed_), out);
  }

  void commit_staged(std::vector<Output>& out) {
    Staged staged = *std::exchange(staged_, {});
    committed_ = staged.s;
    applied_ = commit(staged.s, staged.attempt, std::move(staged.record), out);
  }
};

}  // namespace troupe
