// The state of a job as the contents of a checkpoint, and back.
#pragma once

#include "actors/client/session.hpp"
#include "serialization/checkpoint.hpp"

namespace troupe {

// As of its commit, which is also its step until somebody says otherwise, and with the numeric
// profile of this process.
CheckpointData checkpoint_of(JobState state);
JobState state_of(CheckpointData data);
// With what stays in files: `stored`.
JobState state_of(StoredCheckpoint checkpoint);
std::vector<StoredVariable> stored_variables(const StoredCheckpoint& checkpoint);

}  // namespace troupe
