// The checkpoint files that a process writes and reads for its own variables.
#pragma once

#include <cstdint>
#include <string>

#include "actors/resources/prompt_resource.hpp"
#include "serialization/file.hpp"

namespace troupe {

struct NoWrites {};  // a run logs nothing here

// The state machine of checkpoint files for one device's partitions.
//
// A run that saves needs no undo: a file in a checkpoint's folder counts only if the manifest names
// it, and the manifest names only files from answers that arrived. A repeated run writes files with
// other names.
//
// Calls block as long as the file system does.
class Shards final : public PromptResource<NoWrites, NoWrites> {
 public:
  // `unique`: a number that no other writer to the same folders has.
  Shards(FileSystem& files, std::uint64_t unique) : files_(files), unique_(unique) {}

 private:
  using Item = ResourceRequest::Item;
  // Save: failed_precondition if the folder lacks the token, resource_exhausted on a full disk,
  // out_of_range for a refused NaN. Restore: data_loss for a tensor that is not as stated.
  Expected<std::vector<Tensor>> perform(ResourceRequest& request) override;
  Expected<Tensor> write(const Item& item);
  Expected<std::vector<Tensor>> restore(const Item& item) const;

  std::string name() const override { return "shards"; }
  std::uint32_t keys_of(const NoWrites&) const override { return 0; }
  Expected<std::pair<std::uint64_t, NoWrites>> record_of(CommitNumber, const AttemptId&,
                                                         NoWrites) override {
    return std::pair{std::uint64_t{0}, NoWrites{}};
  }
  Status commit(CommitNumber, const AttemptId&, NoWrites, Outputs&) override { return ok_status(); }
  Expected<NoWrites> whole() const override { return NoWrites{}; }
  Status write_record(const NoWrites&, StateWriter&) const override { return ok_status(); }
  Expected<NoWrites> read_record(StateReader&) const override { return NoWrites{}; }

  FileSystem& files_;
  const std::uint64_t unique_;
  std::uint64_t written_ = 0;
};

ResourceKind shards_kind();

}  // namespace troupe
