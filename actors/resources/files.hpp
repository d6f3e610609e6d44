// The files that steps save and restore.
#pragma once

#include <map>
#include <string>

#include "actors/resources/prompt_resource.hpp"
#include "serialization/file.hpp"

namespace troupe {

// What an attempt has saved: written beside its place, and synced.
struct SavedFiles {
  struct File {
    std::string path;     // as the node says it
    std::string place;    // where it goes: where links of that name lead
    std::string written;  // where it is until the run is decided
  };
  std::map<WriteKey, File> files;
};

// The machine of the files of one device's partitions.
//
// Save writes the whole file beside its place; it takes the place of an older one when the run is
// committed, before the run is answered. A run that fails, or is done again, leaves nothing; a
// process that is killed in between leaves the hidden file ".FILE.*.tmp". A Restore reads what was
// committed, or what its own run has saved before. Of two files that one run saves under one path,
// that of the later node counts.
//
// Calls block as long as the file system does.
class Files final : public PromptResource<SavedFiles, SavedFiles> {
 public:
  // `unique`: nobody else who saves there has it.
  Files(FileSystem& files, std::uint64_t unique);
  // What is not decided is gone.
  ~Files() override { forget_all(); }

  bool at_rest() const { return logs_.empty() && staged_count() == 0; }

 private:
  using Item = ResourceRequest::Item;
  // Save: resource_exhausted on a full disk, failed_precondition and not_found for a place that
  // cannot be written, invalid_argument for names or tensors that the format does not hold.
  // Restore: not_found, data_loss for a damaged file, invalid_argument for another dtype or shape.
  Expected<std::vector<Tensor>> perform(ResourceRequest& request) override;
  Status save(const AttemptId& attempt, const Item& item);
  Expected<std::vector<Tensor>> restore(const AttemptId& attempt, const Item& item) const;

  std::string name() const override { return "files"; }
  std::uint32_t keys_of(const SavedFiles& log) const override {
    return std::uint32_t(log.files.size());
  }
  Expected<std::pair<std::uint64_t, SavedFiles>> record_of(CommitNumber, const AttemptId&,
                                                           SavedFiles log) override;
  Status commit(CommitNumber s, const AttemptId& attempt, SavedFiles record, Outputs& out) override;
  // What is in its place belongs to the file system, and no state of the job. A record names files
  // of this machine: where there is another, applying it says so.
  Expected<SavedFiles> whole() const override { return SavedFiles{}; }
  Status write_record(const SavedFiles& record, StateWriter& out) const override;
  Expected<SavedFiles> read_record(StateReader& in) const override;
  void dropped(SavedFiles& log) override;
  void withdrawn(SavedFiles& record) override { dropped(record); }

  FileSystem& files_;
  const std::string unique_;  // in the names of files on their way: others may save there, too
  std::uint64_t written_ = 0;
};

ResourceKind files_kind();

}  // namespace troupe
