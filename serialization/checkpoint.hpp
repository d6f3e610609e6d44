// Checkpoints: all state of a job as of one commit, in a directory of its own that is there as a
// whole or not at all.
//
//   DIR/ckpt-1200/                          after step 1200 of training
//                 shard-00000.safetensors   tensors that safetensors holds, a few GB per shard
//                 other.tensors             strings and c128, if any (schema/tensors.capnp)
//                 resource-00000.state      a queue, or another resource (resource_state.hpp)
//                 program.state             what the program wrote down, how its graph began, if
//                 any manifest.json             what belongs here and the checksums; written last
//   DIR/.ckpt-1300.tmp/                     being written, or left behind by a crash: never read
//
// Each file is synced, then its directory, which is then renamed into place and the parent synced.
// Checksums are CRC32C over 1 MiB of a file each; the manifest ends with its own.
//
// A resource is named by its kind, container and name, a variable by its container and name:
// neither says where it was, so that a checkpoint is restored on other devices and another number
// of workers.
//
// Those of format 4, in which a program wrote nothing down, 3, which had no resources, and 2, which
// named the folder by the commit and knew of no step, are still read.
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

// What is called ckpt-STEP in `dir`, by step; unread. not_found when there is no such directory.
Expected<std::vector<CheckpointInfo>> list_checkpoints(const std::string& dir,
                                                       FileSystem& files = disk());

// Reads every byte and compares checksums. data_loss names the file that is missing, cut or
// changed; not_found when there is no checkpoint at all.
Status verify_checkpoint(const std::string& path, FileSystem& files = disk());

// The one of the highest step that verifies. not_found, with the reasons, when none does.
Expected<CheckpointInfo> latest_checkpoint(const std::string& dir, FileSystem& files = disk());

// Verifies, reads, and compares the hash of all tensors with the manifest's.
Expected<CheckpointData> read_checkpoint(const std::string& path, FileSystem& files = disk());

}  // namespace troupe
