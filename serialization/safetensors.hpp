// Tensors in the safetensors format, which Python and others read: u64 length of the header, a JSON
// header padded with spaces to 8 bytes, then the elements, row-major, little-endian, without gaps.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "core/tensor.hpp"
#include "serialization/file.hpp"

namespace troupe {

struct Safetensors {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
};

// Whether the format supports the dtype. It does not support strings and c128.
bool safetensors_holds(DType dtype);

// invalid_argument for an unsupported dtype, for the name "__metadata__", and for names or metadata
// that are not UTF-8. REQUIRES: tensors defined, in host memory.
Status write_safetensors(WritableFile& file, const Safetensors& content);
// Writes the file atomically (write_file()).
Status write_safetensors(const std::string& path, const Safetensors& content,
                         FileSystem& files = disk());

// data_loss, with the reason, for anything else than such a file; allocates nothing larger than the
// file. A file without tensors is fine.
Expected<Safetensors> read_safetensors(ReadableFile& file);
// The tensors with these names, in this order; not_found for a name that the file does not have.
Expected<std::vector<Tensor>> read_safetensors(ReadableFile& file,
                                               const std::vector<std::string>& names);
Expected<Safetensors> read_safetensors(const std::string& path, FileSystem& files = disk());

}  // namespace troupe
