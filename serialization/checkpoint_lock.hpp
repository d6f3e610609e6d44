// Keeps a folder of checkpoints to one writer.
#pragma once

#include <string>

#include "core/descriptor.hpp"
#include "core/status.hpp"

namespace troupe {

// Each writer removes what another has begun there (CheckpointDraft::begin), so it holds this lock
// meanwhile. The kernel releases it when the process ends.
class CheckpointLock {
 public:
  // failed_precondition: somebody else has it, also in this process. On a file system without locks
  // it warns, and locks nothing.
  static Expected<CheckpointLock> take(const std::string& dir);

 private:
  explicit CheckpointLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace troupe
