// Hashes of a model's parameters, to check that two runs have the same bits.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

namespace troupe {

// SHA-256, in lower-case hexadecimal, of these bytes, for each parameter in order of the bytes of
// its name:
//   name               u32 count of bytes, the bytes
//   name of the dtype  u32 count of bytes, the bytes ("f32")
//   shape              u32 rank, each dimension as i64
//   elements           row-major, each as in memory; a string as u64 count and bytes
// Numbers are little-endian. The counts make the encoding of a list unique.
// REQUIRES: names differ, tensors are defined and in host memory.
std::string params_sha256(std::vector<std::pair<std::string, Tensor>> parameters);

// SHA-256, in lower-case hexadecimal, of one tensor: name of the dtype, shape and elements as
// above. REQUIRES: it is defined and in host memory.
std::string tensor_sha256(const Tensor& tensor);

}  // namespace troupe
