#include "devices/cuda/precision.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace troupe::cuda {

Expected<bool> allows_tf32() {
  const char* text = std::getenv("TROUPE_CUDA_TF32");
  const std::string_view word = text ? text : "";
  if (word.empty() || word == "0") return false;
  if (word == "1") return true;
  return invalid_argument("TROUPE_CUDA_TF32 is '" + std::string(word) + "', not 1 or 0");
}

}  // namespace troupe::cuda
