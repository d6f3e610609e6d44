// What runs do with the mutexes that they hold.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "actors/resources/prompt_resource.hpp"

namespace troupe {

struct MutexTypes {
  // Replicas of the run that have acquired it, and not released it.
  struct Log {
    std::set<std::uint32_t> held;
  };
  struct Record {};
};

// The machine of one mutex. Which run holds it is decided at the master, before the run begins
// (actors/master/mutex_turns.hpp); so a run is never made to wait here, and nothing is lost with
// the process. This one sees to it that the run acquires and releases in turn. It has nothing to
// commit: what it knows of a run goes when the run's attempt is over.
class MutexState final : public PromptResource<MutexTypes::Log, MutexTypes::Record> {
 public:
  explicit MutexState(std::string name) : name_(std::move(name)) {}

  // Attempts that it knows of: none when nothing runs.
  std::size_t attempts() const { return logs_.size(); }

 private:
  std::string name() const override { return "mutex '" + name_ + "'"; }
  std::uint32_t keys_of(const MutexTypes::Log&) const override { return 0; }
  Expected<std::vector<Tensor>> perform(ResourceRequest& request) override;
  Expected<std::pair<std::uint64_t, MutexTypes::Record>> record_of(CommitNumber, const AttemptId&,
                                                                   MutexTypes::Log) override {
    return std::pair{std::uint64_t{0}, MutexTypes::Record{}};
  }
  Status commit(CommitNumber, const AttemptId&, MutexTypes::Record, Outputs&) override {
    return ok_status();
  }

  const std::string name_;
};

ResourceKind mutex_kind();

}  // namespace troupe
