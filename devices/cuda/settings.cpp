#include "devices/cuda/settings.hpp"

#include <cstdlib>
#include <string>
#include <string_view>

namespace troupe::cuda {
namespace {

Expected<bool> flag(const char* variable) {
  const char* text = std::getenv(variable);
  const std::string_view word = text ? text : "";
  if (word.empty() || word == "0") return false;
  if (word == "1") return true;
  return invalid_argument(std::string(variable) + " is '" + std::string(word) + "', not 1 or 0");
}

}  // namespace

Expected<bool> allows_tf32() { return flag("TROUPE_CUDA_TF32"); }
Expected<bool> measures_choices() { return flag("TROUPE_CUDA_TUNE"); }
Expected<bool> waits_for_each() { return flag("TROUPE_CUDA_SYNC"); }

}  // namespace troupe::cuda
