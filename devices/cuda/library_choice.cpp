#include "devices/cuda/library_choice.hpp"

#include <cstdlib>

#include "core/log.hpp"

namespace troupe::cuda {

Expected<LibraryChoice> choose_library(const LibraryWish& of, const Driver& driver,
                                       FunctionRef<FoundLibrary()> look) {
  const char* set = std::getenv(of.variable);
  const std::string wish = set ? set : "", variable = of.variable, name = of.library;
  if (!wish.empty() && wish != "kernels" && wish != of.word)
    return invalid_argument(variable + " is '" + wish + "', not kernels or " + of.word);
  if (wish == "kernels") return LibraryChoice{.text = "Troupe's kernels: " + variable + "=kernels"};
  const FoundLibrary found = look();
  std::string lacks;
  if (!found.status.ok()) {
    lacks = name + " is " + found.lacks;
    if (found.status.code() != Code::not_found)
      return failed_precondition(std::string(of.what) + " are computed by " + name +
                                 ", which is unusable: " + found.lacks + "; " + variable +
                                 "=kernels does without it");
  } else if (driver.version != 0 && found.cuda_major > driver.version / 1000) {
    lacks = found.path + " is too new for the driver of CUDA " + version_text(driver.version);
  } else if (found.fake != driver.fake) {
    lacks = found.path + " is not for " + (driver.fake ? "the fake driver" : "a GPU");
  }
  if (lacks.empty()) return LibraryChoice{true, !wish.empty(), name + " (" + found.path + ")"};
  if (wish == of.word) return failed_precondition(variable + "=" + wish + ": " + lacks);
  return LibraryChoice{.text = "Troupe's kernels: " + lacks};
}

bool LibraryGaps::leaves(const Status& status) const {
  if (alone_ || status.code() != Code::unimplemented) return false;
  if (!warned_.exchange(true))
    TROUPE_LOG(warning, "cuda",
               status.message() + ": such " + what_ + " are computed by Troupe's kernels");
  return true;
}

}  // namespace troupe::cuda
