// The state of a job as the contents of a checkpoint, and back.
#pragma once

#include "actors/client/session.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {

// The checkpoint's contents, with the numeric profile of this process. Its step is the commit
// number, unless the caller changes it.
CheckpointData checkpoint_of(JobState state);
JobState state_of(CheckpointData data);
// The same with variables that stay in files: JobState::stored.
JobState state_of(StoredCheckpoint checkpoint);
std::vector<StoredVariable> stored_variables(const StoredCheckpoint& checkpoint);

}  // namespace troupe
