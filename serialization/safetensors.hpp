// Tensors in the safetensors format, which Python and others read: u64 length of the header, a JSON
// header padded with spaces to 8 bytes, then the elements, row-major, little-endian, without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/shape.hpp"
#include "core/status.hpp"
#include "core/tensor.hpp"
#include "serialization/file.hpp"

namespace troupe {

// What a file says of a tensor.
struct SafetensorsEntry {
  std::string name;
  DType dtype = DType::invalid;  // so are those that Troupe lacks
  Shape shape;
  std::uint64_t begin = 0, end = 0;  // from the end of the header
  std::string dtype_text;            // as in the file: "F32"

  std::string type_text() const;  // "f32[2,3]"
};

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

// data_loss, with the reason, for anything else than such a file, and invalid_argument for a tensor
// of a dtype that Troupe lacks; allocates nothing larger than the file. A file without tensors is
// fine.
Expected<Safetensors> read_safetensors(ReadableFile& file);
// The tensors with these names, in this order; not_found for a name that the file does not have.
Expected<std::vector<Tensor>> read_safetensors(ReadableFile& file,
                                               const std::vector<std::string>& names);
Expected<Safetensors> read_safetensors(const std::string& path, FileSystem& files = disk());

// A file whose tensors are read one by one. Errors are those of read_safetensors(), and name the
// file; tensors that nobody reads may have any dtype.
class SafetensorsFile {
 public:
  static Expected<SafetensorsFile> open(const std::string& path, FileSystem& files = disk());

  const SafetensorsEntry* find(const std::string& name) const;  // null: it has none of this name
  Expected<Tensor> read(const SafetensorsEntry& entry) const;

 private:
  std::string path_;
  std::unique_ptr<ReadableFile> file_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::uint64_t data_ = 0;
};

}  // namespace troupe
