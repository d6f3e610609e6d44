// manifest.json of a checkpoint: the list of its files, and the checksums.
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
  std::uint64_t folder = 0;    // number in the folder's name: the step; in format 2 the commit
  std::string tensors_sha256;  // of the names and hashes of all tensors; empty in older formats
  std::string params_sha256;   // of all tensors, in formats before 6
  std::vector<ManifestResource> resources;
  std::vector<ManifestFile> files;
};

// One JSON object whose last field is the CRC32C of all text before it, so that every changed byte
// is detected. invalid_argument for text that is not UTF-8.
Expected<std::string> format_manifest(const Manifest& manifest);
// data_loss for anything else. Checked: file names are plain and unique, numbers of chunks match
// sizes, positions of datasets are possible, and resources are unique, each with its own file.
Expected<Manifest> parse_manifest(std::string_view text);

// Only the files, as in a manifest; invalid_argument for text that is not UTF-8.
Expected<std::string> format_files(const std::vector<ManifestFile>& files);
Expected<std::vector<ManifestFile>> parse_files(std::string_view text);

// The value of Manifest::tensors_sha256 for these files.
std::string tensors_sha256(const std::vector<ManifestFile>& files);

// Appends in whole chunks and records their checksums.
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

// Reads a whole file and compares its checksums. data_loss if they differ.
Status verify_chunks(ReadableFile& file, const ManifestFile& record);

}  // namespace troupe::detail
