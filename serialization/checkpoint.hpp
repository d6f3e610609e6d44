// Checkpoints: all state of a job at one commit, in its own directory, which appears complete or
// not at all.
//
//   DIR/ckpt-1200/                          after step 1200 of training
//                 shard-00000.safetensors   tensors in safetensors format, a few GB per shard
//                 shard.tensors             strings and c128, if any (schema/tensors.capnp)
//                 resource-00000.state      a queue or another resource (resource_state.hpp)
//                 program.state             the program's note and progress (JobPlace), if any
//                 manifest.json             list of the files, with checksums; written last
//   DIR/.ckpt-next.tmp/                     being written, or left behind by a crash: never read
//
// Each file is synced, then its directory, which is then renamed into place and the parent synced.
// The manifest has a CRC32C for each MiB of each file, the SHA-256 of each tensor, and at the end
// its own CRC32C.
//
// Several processes that share the directory may write shards and read tensors: each handles the
// ones it needs, and one process writes the manifest (CheckpointDraft).
//
// A resource is named by its kind, container and name, a variable by its container and name. The
// names include no place, so that a checkpoint can be restored on other devices and on another
// number of workers.
//
// Older formats can still be read: 5 (no record of the file of each tensor), 4 (no program.state),
// 3 (no resources), and 2 (no training step; the folder is named after the commit).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "core/transaction.hpp"
#include "graph/graph_marks.hpp"
#include "serialization/file.hpp"
#include "serialization/stored_tensor.hpp"

namespace troupe {

// The general part of a checkpoint.
struct CheckpointHeader {
  std::uint64_t step = 0;   // of training, counted by the program; format 2: commit - 1
  CommitNumber commit = 0;  // the last one included
  std::uint64_t seed = 0;
  std::map<std::string, std::string> metadata;  // UTF-8
  std::string graph_hash;                       // graph_sha256, to detect another program
  std::string numeric_profile;                  // text; results depend on it bit by bit
  std::vector<DatasetPlace> datasets;           // read positions, each dataset once
};

struct CheckpointData : CheckpointHeader {
  std::map<std::string, Tensor> tensors = {};  // defined, in host memory
  std::vector<SavedResource> resources = {};   // each once; u8 tensors in host memory
  // Of the program: see JobPlace.
  std::string note = {};
  std::set<std::string> once = {};
  std::vector<Tensor> fetches = {};  // in host memory
  std::uint64_t draws = 0;
  std::vector<GraphMark> graph = {};
};

// The same with tensors that stay in their files until they are read.
struct StoredCheckpoint {
  CheckpointData data;                // without those tensors
  std::string path;                   // of the folder
  std::vector<CheckpointFile> files;  // with the tensors, each tensor once
};

struct CheckpointInfo {
  std::uint64_t step = 0;  // from the folder's name; in format 2 the commit
  std::string path;
};

struct CheckpointOptions {
  std::size_t keep = 3;  // including this one; 0: all. Higher steps are not touched
  std::uint64_t shard_bytes = std::uint64_t{2} << 30;
  std::set<std::string> spare = {};  // names of others that stay: "ckpt-STEP"
};

// Writes DIR/ckpt-STEP, then removes the oldest beyond `keep`. Replaces a checkpoint of the same
// step atomically. After an error (resource_exhausted: the disk is full) older checkpoints are
// unchanged and nothing partial is left. One writer per directory at a time; readers at any time.
Expected<CheckpointInfo> write_checkpoint(const std::string& dir, const CheckpointData& data,
                                          const CheckpointOptions& options,
                                          FileSystem& files = disk());
inline Expected<CheckpointInfo> write_checkpoint(const std::string& dir, const CheckpointData& data,
                                                 std::size_t keep = 3) {
  return write_checkpoint(dir, data, CheckpointOptions{.keep = keep});
}

// An unfinished checkpoint: a temporary folder, into which several processes may write shards. One
// owner. The destructor removes the folder unless it was finished.
class CheckpointDraft {
 public:
  // In `dir`. Errors, and the rule of one writer, are those of write_checkpoint().
  static Expected<CheckpointDraft> begin(const std::string& dir, FileSystem& files = disk());
  CheckpointDraft(CheckpointDraft&& other) noexcept;
  CheckpointDraft& operator=(CheckpointDraft&&) = delete;
  ~CheckpointDraft();

  const std::string& folder() const { return temporary_; }
  // A random text that is in the folder, too, so that others can identify it (check_draft).
  const std::string& token() const { return token_; }
  // Publishes DIR/ckpt-STEP with these shards, which are in the folder and synced, and with `data`.
  // Removes other files from the folder.
  Expected<CheckpointInfo> finish(const CheckpointData& data, std::vector<CheckpointFile> shards,
                                  const CheckpointOptions& options = {});

 private:
  CheckpointDraft(FileSystem& files, std::string dir);
  Status finish_folder(const CheckpointData& data, std::vector<CheckpointFile> shards,
                       const CheckpointOptions& options);
  Status move_into_place(const std::string& path);
  Status replace(const std::string& path);

  FileSystem* files_;
  std::string dir_, temporary_, token_;
  bool over_ = true;
};

// Checks that `folder` is that of the draft with this token. Otherwise failed_precondition, for
// example on a machine that does not share it.
Status check_draft(FileSystem& files, const std::string& folder, const std::string& token);

// Writes tensors, defined and in host memory, to NAME-00000.safetensors and so on, a few GB each.
// dtypes that safetensors does not support go to NAME.tensors. Files are synced. already_exists if
// a file exists. Files written before an error stay.
Expected<std::vector<CheckpointFile>> write_shards(
    FileSystem& files, const std::string& folder, const std::string& name,
    const std::map<std::string, Tensor>& tensors,
    std::uint64_t shard_bytes = CheckpointOptions{}.shard_bytes);
// Converts the result of write_shards() to text and back. invalid_argument for a name that is not
// UTF-8; data_loss for any other text.
Expected<std::string> text_of(const std::vector<CheckpointFile>& shards);
Expected<std::vector<CheckpointFile>> parse_shards(std::string_view text);

// Reads these tensors of a checkpoint's file, in this order. data_loss if one differs from the
// manifest; not_found if the file does not exist.
Expected<std::vector<Tensor>> read_stored(FileSystem& files, const std::string& file,
                                          const std::vector<StoredTensor>& tensors);

// The entries of `dir` with names ckpt-STEP, sorted by step, unread. not_found if `dir` is missing.
Expected<std::vector<CheckpointInfo>> list_checkpoints(const std::string& dir,
                                                       FileSystem& files = disk());

// Reads every byte and compares checksums. data_loss names the file that is missing, truncated or
// changed; not_found if there is no checkpoint.
Status verify_checkpoint(const std::string& path, FileSystem& files = disk());
// The same for an entry of list_checkpoints(). nullopt: its writer has removed it since.
std::optional<Status> verify_listed(const CheckpointInfo& info, FileSystem& files = disk());

// The checkpoint of the highest step that verifies. Damaged ones are passed over; not_found, with
// the reasons, if all are. One that cannot be read now (no permission, too many open files) or is
// of a later format is that error: it may be whole, and an older one would lose what came after it.
Expected<CheckpointInfo> latest_checkpoint(const std::string& dir, FileSystem& files = disk());

// Puts a folder in order that a crash left: removes what was begun, and gives a replaced checkpoint
// its name back. For the writer; CheckpointDraft does it, too. What cannot be removed stays, and
// stops no later checkpoint; the first error is returned.
Status tidy_checkpoints(const std::string& dir, FileSystem& files = disk());

// failed_precondition if latest_checkpoint() would pass over one of this step, because `dir` has
// one of a higher step that verifies.
Status check_is_latest(const std::string& dir, std::uint64_t step, FileSystem& files = disk());

// Verifies, and reads all but the shards. In formats before 6 it reads the tensors, too, and
// `files` is empty.
Expected<StoredCheckpoint> open_checkpoint(const std::string& path, FileSystem& files = disk());

// Verifies and reads everything, and compares the hashes of all tensors with the manifest.
Expected<CheckpointData> read_checkpoint(const std::string& path, FileSystem& files = disk());

}  // namespace troupe
