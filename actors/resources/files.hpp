// The files of Save and Restore nodes.
#pragma once

#include <map>
#include <string>

#include "actors/resources/prompt_resource.hpp"
#include "serialization/file.hpp"

namespace troupe {

// The files that an attempt has saved: written next to their destinations, and synced.
struct SavedFiles {
  struct File {
    std::string path;     // as the node gives it
    std::string place;    // the destination, with links resolved
    std::string written;  // the temporary file, until the run is decided
  };
  std::map<WriteKey, File> files;
};

// The state machine of files for one device's partitions.
//
// Save writes a temporary file next to the destination; it replaces the destination when the run is
// committed, before the run is answered. A run that fails or is repeated leaves nothing; a process
// that is killed in between leaves the hidden file ".FILE.*.tmp". A Restore reads committed files,
// or what its own run has saved before. If one run saves two files under one path, that of the
// later node counts, and of the replicas of a node that of the first one.
//
// Calls block as long as the file system does.
class Files final : public PromptResource<SavedFiles, SavedFiles> {
 public:
  // `unique`: a number that no other writer to the same folders has.
  Files(FileSystem& files, std::uint64_t unique);
  // Removes files that are not decided.
  ~Files() override { forget_all(); }

 private:
  using Item = ResourceRequest::Item;
  // Save: resource_exhausted on a full disk; failed_precondition or not_found if the path cannot be
  // written; invalid_argument for names or tensors that the format does not support. Restore:
  // not_found, data_loss for a damaged file, invalid_argument for another dtype or shape.
  Expected<std::vector<Tensor>> perform(ResourceRequest& request) override;
  Status write(const AttemptId& attempt, const Item& item);
  Expected<std::vector<Tensor>> restore(const AttemptId& attempt, const Item& item) const;

  std::string name() const override { return "files"; }
  std::uint32_t keys_of(const SavedFiles& log) const override {
    return std::uint32_t(log.files.size());
  }
  Expected<std::pair<std::uint64_t, SavedFiles>> record_of(CommitNumber, const AttemptId&,
                                                           SavedFiles log) override;
  Status commit(CommitNumber s, const AttemptId& attempt, SavedFiles record, Outputs& out) override;
  // Committed files belong to the file system, not to the job's state. A record names files of this
  // machine: applying it on another fails.
  Expected<SavedFiles> whole() const override { return SavedFiles{}; }
  Status write_record(const SavedFiles& record, StateWriter& out) const override;
  Expected<SavedFiles> read_record(StateReader& in) const override;
  void dropped(SavedFiles& log) override;
  void withdrawn(SavedFiles& record) override { dropped(record); }

  FileSystem& files_;
  const std::string unique_;  // part of temporary names, since others may save there, too
  std::uint64_t written_ = 0;
};

ResourceKind files_kind();

}  // namespace troupe
