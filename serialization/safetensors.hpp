// Tensors in the safetensors format, which Python and other programs read: u64 length of the
// header, a JSON header padded with spaces to 8 bytes, then the elements, row-major, little-endian,
// without holes.
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

// Strings and c128 are not.
bool safetensors_holds(DType dtype);

// invalid_argument for a tensor that the format does not hold, for the name "__metadata__", and for
// names or metadata that are not UTF-8. REQUIRES: tensors defined, in host memory.
Status write_safetensors(WritableFile& file, const Safetensors& content);
// The same into a file that is there as a whole or not at all.
Status write_safetensors(const std::string& path, const Safetensors& content,
                         FileSystem& files = disk());

// data_loss for anything that is no such file, with the reason; nothing larger than the file is
// allocated. Zero tensors are fine.
Expected<Safetensors> read_safetensors(ReadableFile& file);
// Some of its tensors, in this order; not_found for a name that it does not have.
Expected<std::vector<Tensor>> read_safetensors(ReadableFile& file,
                                               const std::vector<std::string>& names);
Expected<Safetensors> read_safetensors(const std::string& path, FileSystem& files = disk());

}  // namespace troupe
