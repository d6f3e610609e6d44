// Checkpoints: all state of a job as of one commit, in a directory of its own that is there as a
// whole or not at all.
//
//   DIR/ckpt-1200/                          after step 1200 of training
//                 shard-00000.safetensors   tensors that safetensors holds, a few GB per shard
//                 shard-00000.tensors       strings and c128, if any (schema/tensors.capnp)
//                 resource-00000.state      a queue, or another resource (resource_state.hpp)
//                 program.state             what the program wrote down, how its graph began, if
//                 any manifest.json             what belongs here and the checksums; written last
//   DIR/.ckpt-next.tmp/                     being written, or left behind by a crash: never read
//
// Each file is synced, then its directory, which is then renamed into place and the parent synced.
// Checksums are CRC32C over 1 MiB of a file each; the manifest ends with its own, and has the
// SHA-256 of each tensor.
//
// Shards may be written, and tensors read, by several processes that share the directory: each has
// those that it needs, and one of them writes the manifest (CheckpointDraft).
//
// A resource is named by its kind, container and name, a variable by its container and name:
// neither says where it was, so that a checkpoint is restored on other devices and another number
// of workers.
//
// Those of format 5, which did not say where each tensor is, 4, in which a program wrote nothing
// down, 3, which had no resources, and 2, which named the folder by the commit and knew of no step,
// are still read.
#pragma once

#include <map>
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

// What a checkpoint says of itself.
struct CheckpointHeader {
  std::uint64_t step = 0;   // of training, as whoever trains counts; of format 2: commit - 1
  CommitNumber commit = 0;  // the last one that is in it
  std::uint64_t seed = 0;
  std::map<std::string, std::string> metadata;  // UTF-8
  std::string graph_hash;                       // graph_sha256, to refuse another program
  std::string numeric_profile;                  // text; other settings give other bits
  std::vector<DatasetPlace> datasets;           // how far they were read, each once
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

// The same with tensors that stay in their files until somebody reads them.
struct StoredCheckpoint {
  CheckpointData data;                // without those
  std::string path;                   // of the folder
  std::vector<CheckpointFile> files;  // that have them; each tensor once
};

struct CheckpointInfo {
  std::uint64_t step = 0;  // as the folder's name says; in format 2 that is the commit
  std::string path;
};

struct CheckpointOptions {
  std::size_t keep = 3;  // with this one; 0: all. Steps above this one's are left alone
  std::uint64_t shard_bytes = std::uint64_t{2} << 30;
};

// Writes DIR/ckpt-STEP, then removes the oldest beyond `keep`. One of the same step is replaced in
// one move. After an error (resource_exhausted: the disk is full) the older ones are as they were
// and nothing half-written is left. One writer per directory at a time; readers may come any time.
Expected<CheckpointInfo> write_checkpoint(const std::string& dir, const CheckpointData& data,
                                          const CheckpointOptions& options,
                                          FileSystem& files = disk());
inline Expected<CheckpointInfo> write_checkpoint(const std::string& dir, const CheckpointData& data,
                                                 std::size_t keep = 3) {
  return write_checkpoint(dir, data, CheckpointOptions{.keep = keep});
}

// A checkpoint on its way: a folder that does not count, into which shards are written by whoever
// has what goes into them. One owner. What is not finished is removed.
class CheckpointDraft {
 public:
  // In `dir`. Errors and writers as of write_checkpoint().
  static Expected<CheckpointDraft> begin(const std::string& dir, FileSystem& files = disk());
  CheckpointDraft(CheckpointDraft&& other) noexcept;
  CheckpointDraft& operator=(CheckpointDraft&&) = delete;
  ~CheckpointDraft();

  const std::string& folder() const { return temporary_; }
  // What is written in the folder, for those who have to know that it is this one (check_draft).
  const std::string& token() const { return token_; }
  // As DIR/ckpt-STEP, with what `data` has beside the shards, which are in the folder and synced.
  // Files there that nobody names are removed.
  Expected<CheckpointInfo> finish(const CheckpointData& data, std::vector<CheckpointFile> shards,
                                  const CheckpointOptions& options = {});

 private:
  CheckpointDraft(FileSystem& files, std::string dir);
  Status finish_folder(const CheckpointData& data, std::vector<CheckpointFile> shards,
                       const CheckpointOptions& options);
  Status move_into_place(const std::string& path);

  FileSystem* files_;
  std::string dir_, temporary_, token_;
  bool over_ = true;
};

// Whether `folder` is that of the draft with this token: failed_precondition if it is another one,
// or none, as in a process of a machine that does not share it.
Status check_draft(FileSystem& files, const std::string& folder, const std::string& token);

// Writes tensors, defined and in host memory, as NAME-00000.safetensors and so on, with a few GB
// each, and what safetensors does not hold as NAME.tensors; synced. already_exists: such a file is
// there. What was written before an error stays.
Expected<std::vector<CheckpointFile>> write_shards(
    FileSystem& files, const std::string& folder, const std::string& name,
    const std::map<std::string, Tensor>& tensors,
    std::uint64_t shard_bytes = CheckpointOptions{}.shard_bytes);
// What write_shards() returned as text, and back. data_loss for what it does not return.
std::string text_of(const std::vector<CheckpointFile>& shards);
Expected<std::vector<CheckpointFile>> parse_shards(std::string_view text);

// Tensors of a checkpoint's file, in this order. data_loss when one is not what the manifest says;
// not_found when the file is not there.
Expected<std::vector<Tensor>> read_stored(FileSystem& files, const std::string& file,
                                          const std::vector<StoredTensor>& tensors);

// What is called ckpt-STEP in `dir`, by step; unread. not_found when there is no such directory.
Expected<std::vector<CheckpointInfo>> list_checkpoints(const std::string& dir,
                                                       FileSystem& files = disk());

// Reads every byte and compares checksums. data_loss names the file that is missing, cut or
// changed; not_found when there is no checkpoint at all.
Status verify_checkpoint(const std::string& path, FileSystem& files = disk());

// The one of the highest step that verifies. not_found, with the reasons, when none does.
Expected<CheckpointInfo> latest_checkpoint(const std::string& dir, FileSystem& files = disk());

// Verifies, and reads what is not in shards. Of formats that do not say where each tensor is, all
// of it: `files` is empty.
Expected<StoredCheckpoint> open_checkpoint(const std::string& path, FileSystem& files = disk());

// Verifies, reads, and compares the hashes of all tensors with the manifest's.
Expected<CheckpointData> read_checkpoint(const std::string& path, FileSystem& files = disk());

}  // namespace troupe
