// Descriptions of a checkpoint's files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "core/shape.hpp"

namespace troupe {

// A tensor in a file.
struct StoredTensor {
  std::string name;
  DType dtype = DType::invalid;
  Shape shape;
  std::string sha256;  // tensor_sha256()
};

struct CheckpointFile {
  std::string name;
  std::uint64_t size = 0;
  std::vector<std::uint32_t> chunks;  // CRC32C per chunk, the last one shorter
  std::vector<StoredTensor> tensors = {};
};

}  // namespace troupe
