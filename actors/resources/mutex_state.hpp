// The use of a mutex within runs.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "actors/resources/prompt_resource.hpp"

namespace troupe {

struct MutexTypes {
  // Replicas of the run that have acquired the mutex and not released it.
  struct Log {
    std::set<std::uint32_t> held;
  };
  struct Record {};
};

// The state machine of one mutex. The master decides which run holds it, before the run begins
// (actors/master/mutex_turns.hpp). So a run never waits here, and nothing is lost with the process.
// This only checks that the run acquires and releases alternately. It commits nothing; its record
// of a run is dropped when the attempt is over.
class MutexState final : public PromptResource<MutexTypes::Log, MutexTypes::Record> {
 public:
  explicit MutexState(std::string name) : name_(std::move(name)) {}

  // The known attempts: none if nothing runs.
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
