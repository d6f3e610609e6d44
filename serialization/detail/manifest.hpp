// manifest.json of a checkpoint: what belongs to it, and the checksums.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.hpp"
#include "core/status.hpp"
#include "core/transaction.hpp"
#include "serialization/checkpoint.hpp"
#include "serialization/detail/crc32c.hpp"
#include "serialization/file.hpp"

namespace troupe::detail {

inline constexpr std::size_t kChunkBytes = std::size_t{1} << 20;

using ManifestFile = CheckpointFile;

struct ManifestResource {
  ResourceName resource;
  std::string file;
};

struct Manifest : CheckpointHeader {
  std::uint64_t folder = 0;    // the number in the folder's name: the step, in format 2 the commit
  std::string tensors_sha256;  // of the names and hashes of all tensors; empty in older formats
  std::string params_sha256;   // of all tensors, in formats before 6
  std::vector<ManifestResource> resources;
  std::vector<ManifestFile> files;
};

// One JSON object whose last field is the CRC32C of all text before it, so that no changed byte
// goes unseen. invalid_argument for text that is not UTF-8.
Expected<std::string> format_manifest(const Manifest& manifest);
// data_loss for anything else. File names are plain names, each once, counts of chunks right,
// datasets at places that can be, and each resource once with a file of its own.
Expected<Manifest> parse_manifest(std::string_view text);

// Files alone, as in a manifest; nlohmann::json::exception for text that is not UTF-8.
std::string format_files(const std::vector<ManifestFile>& files);
Expected<std::vector<ManifestFile>> parse_files(std::string_view text);

// Of a manifest's tensors: what `tensors_sha256` is to be.
std::string tensors_sha256(const std::vector<ManifestFile>& files);

// Appends in whole chunks and notes their checksums.
class ChunkedWriter : public WritableFile {
 public:
  ChunkedWriter(WritableFile& file, ManifestFile& record) : file_(file), record_(record) {}
  Status append(std::span<const std::byte> bytes) override;
  Status sync() override;  // the last chunk, then the file

 private:
  Status flush();

  WritableFile& file_;
  ManifestFile& record_;
  std::vector<std::byte> chunk_;
};

// Reads all of a file and compares. data_loss.
Status verify_chunks(ReadableFile& file, const ManifestFile& record);

}  // namespace troupe::detail
